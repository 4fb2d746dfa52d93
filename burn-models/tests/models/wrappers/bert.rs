use super::wrapper;
use burn::module::Module;
use burn::tensor::{Int, Tensor};
use burn_models::bert::*;
use burn_models::layers::{LayerContext, Tokens};
use patching_core::patch::ReplacementClass;
use patching_core::prelude::*;

wrapper!(
    Embeddings(BertEmbeddings),
    new(config: &BertConfig),
    forward(tokens: Tokens, token_type_ids: Option<Tensor<2, Int>>, position_ids: Tensor<2, Int>) -> Tensor<3>
);
wrapper!(
    SelfAttention(BertSelfAttention),
    new(config: &BertConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(
    CrossAttention(BertCrossAttention),
    new(config: &BertConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(
    SelfOutput(BertSelfOutput),
    new(config: &BertConfig),
    forward(x: Tensor<3>, input: Tensor<3>) -> Tensor<3>
);
wrapper!(
    Attention(BertAttention),
    new(config: &BertConfig, layer_idx: usize, is_cross_attention: bool),
    forward(x: Tensor<3>, context: &mut LayerContext) -> (Tensor<3>, Option<Tensor<4>>)
);
wrapper!(Intermediate(BertIntermediate), new(config: &BertConfig), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(Output(BertOutput), new(config: &BertConfig), forward(x: Tensor<3>, input: Tensor<3>) -> Tensor<3>);
wrapper!(
    Layer(BertLayer),
    new(config: &BertConfig, layer_idx: usize),
    forward(x: Tensor<3>, context: &mut LayerContext) -> Tensor<3>
);
wrapper!(Pooler(BertPooler), new(config: &BertConfig), forward(x: Tensor<3>) -> Tensor<2>);
wrapper!(Transform(BertPredictionHeadTransform), new(config: &BertConfig), forward(x: Tensor<3>) -> Tensor<3>);
wrapper!(
    Predictions(BertLMPredictionHead),
    new(config: &BertConfig),
    forward(x: Tensor<3>, table: Option<Tensor<2>>) -> Tensor<3>
);
wrapper!(
    OnlyMlm(BertOnlyMLMHead),
    new(config: &BertConfig),
    forward(x: Tensor<3>, table: Option<Tensor<2>>) -> Tensor<3>
);
wrapper!(OnlyNsp(BertOnlyNSPHead), new(config: &BertConfig), forward(x: Tensor<2>) -> Tensor<2>);
wrapper!(
    PreTraining(BertPreTrainingHeads),
    new(config: &BertConfig),
    forward(x: Tensor<3>, pooled: Tensor<2>, table: Option<Tensor<2>>) -> (Tensor<3>, Tensor<2>)
);

pub(crate) fn wrappers() -> Vec<(&'static str, ReplacementClass)> {
    vec![
        ("BertEmbeddings", class::<Embeddings>()),
        ("BertSelfAttention", class::<SelfAttention>()),
        ("BertCrossAttention", class::<CrossAttention>()),
        ("BertSelfOutput", class::<SelfOutput>()),
        ("BertAttention", class::<Attention>()),
        ("BertIntermediate", class::<Intermediate>()),
        ("BertOutput", class::<Output>()),
        ("BertLayer", class::<Layer>()),
        ("BertPooler", class::<Pooler>()),
        ("BertPredictionHeadTransform", class::<Transform>()),
        ("BertLMPredictionHead", class::<Predictions>()),
        ("BertOnlyMLMHead", class::<OnlyMlm>()),
        ("BertOnlyNSPHead", class::<OnlyNsp>()),
        ("BertPreTrainingHeads", class::<PreTraining>()),
    ]
}
