use super::processors::{Processor, Processors};
use super::sampling::Chooser;
use super::{GenerateError, GenerateOutput, GenerationConfig, Step};
use crate::error::ForwardError;
use crate::inputs::TextInputs;
use crate::models::CausalLM;
use crate::outputs::LanguageModelOutput;
use crate::routing::{ExpertRouting, RoutingError};
use burn::tensor::{DType, Int, Tensor};
use patching_core::capture::{ForwardKwargs, OutputValue};
use std::ops::ControlFlow;

/// Continues each sequence of a batch until a token ends it or enough were added.
///
/// Prompts of different lengths are padded on the left and told apart by their attention mask, from which positions
/// are counted. What `kwargs` and the model's config ask for is recorded at every step.
///
/// An [`expert_routing`](TextInputs::expert_routing) holds for all steps: first the tokens of the prompts, sequence by
/// sequence, then for each further step one token of each sequence, as [`ExpertRouting::concat`] makes it of what the
/// steps of a generation with a cache recorded. What it has for later steps than there are is not used. One that has
/// too few tokens is refused before the first step where that is certain: if it ends within the prompts, or if no token
/// ends a text, so that all steps are made. Otherwise it is an error of the step that it does not reach, which loses
/// the steps before unless the callback of [`generate_with`] kept them.
///
/// # Errors
///
/// When the inputs or the generation config do not fit, or a forward pass fails.
pub fn generate<M: CausalLM>(
    model: &M,
    inputs: impl Into<TextInputs>,
    config: &GenerationConfig,
    kwargs: &ForwardKwargs,
) -> Result<GenerateOutput<M::Output>, GenerateError> {
    steps(model, inputs.into(), config, kwargs, &[], None)
}

/// [`generate`] with rules of a family.
pub(crate) fn generate_processed<M: CausalLM>(
    model: &M,
    inputs: TextInputs,
    config: &GenerationConfig,
    kwargs: &ForwardKwargs,
    processors: &[&dyn Processor],
) -> Result<GenerateOutput<M::Output>, GenerateError> {
    steps(model, inputs, config, kwargs, processors, None)
}

/// What is told of a step and may end the generation.
type Callback<'a, O> = &'a mut dyn FnMut(Step<'_, O>) -> ControlFlow<()>;

/// [`generate`] that tells `callback` of each step; it may end the generation.
///
/// # Errors
///
/// As [`generate`].
pub fn generate_with<M: CausalLM>(
    model: &M,
    inputs: impl Into<TextInputs>,
    config: &GenerationConfig,
    kwargs: &ForwardKwargs,
    mut callback: impl FnMut(Step<'_, M::Output>) -> ControlFlow<()>,
) -> Result<GenerateOutput<M::Output>, GenerateError> {
    steps(model, inputs.into(), config, kwargs, &[], Some(&mut callback))
}

fn steps<M: CausalLM>(
    model: &M,
    inputs: TextInputs,
    config: &GenerationConfig,
    kwargs: &ForwardKwargs,
    processors: &[&dyn Processor],
    mut callback: Option<Callback<'_, M::Output>>,
) -> Result<GenerateOutput<M::Output>, GenerateError> {
    config.validate()?;
    let config = config.or_model(model);
    let kwargs = kwargs.clone().use_cache(kwargs.get_use_cache().unwrap_or(config.use_cache));
    let mut run = Run::new(inputs, &config)?;
    let mut chooser = Chooser::new(&config);
    let mut steps = Vec::new();

    let new_tokens = config.new_tokens(run.length())?;
    let processors = Processors::new(&config, run.length(), new_tokens, processors);
    let is_certain = callback.is_none() && run.eos.is_empty();
    run.check_routing(if is_certain { new_tokens } else { 1 })?;
    for index in 0..new_tokens {
        let mut output = model.forward_causal(run.inputs()?, &kwargs)?;
        run.inputs.cache = output.take_cache();
        let mut scores = last_scores(&output)?;
        let tokens = run.choose(&mut scores, index, &processors, &mut chooser)?;
        let step = Step { index, tokens: &tokens, finished: &run.finished, output: &output };
        let flow = callback.as_mut().map_or(ControlFlow::Continue(()), |callback| callback(step));
        if config.output_logits || has_recorded(&output) {
            steps.push(output);
        }
        run.append(&tokens);
        if flow.is_break() || run.finished.iter().all(|finished| *finished) {
            break;
        }
    }
    let [_, prompt_length] = run.prompt.dims();
    Ok(GenerateOutput { sequences: run.sequences(), prompt_length, new_tokens: run.new_tokens, steps })
}

/// The state between two steps.
struct Run {
    /// What the next forward pass is given; its ids are the whole sequences.
    inputs: TextInputs,
    prompt: Tensor<2, Int>,
    /// All tokens chosen so far, one list for each sequence, padding included.
    chosen: Vec<Vec<i64>>,
    new_tokens: Vec<Vec<i64>>,
    finished: Vec<bool>,
    /// The position of the next token of each sequence.
    next_position: Option<Vec<i64>>,
    eos: Vec<i64>,
    pad: Option<i64>,
    /// The experts that all steps are forced to.
    routing: Option<ExpertRouting>,
}

impl Run {
    fn new(mut inputs: TextInputs, config: &GenerationConfig) -> Result<Self, GenerateError> {
        let given = [
            ("labels", inputs.labels.is_some()),
            ("position_ids", inputs.position_ids.is_some()),
            ("cache", inputs.cache.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            return Err(GenerateError::Argument(name));
        }
        let Some(prompt) = inputs.input_ids.clone() else {
            return Err(GenerateError::NoPrompt);
        };
        let [batch, seq] = prompt.dims();
        let eos = config.eos_token_id.as_ref();
        let eos = eos.map_or_else(Vec::new, |ids| ids.as_slice().to_vec());
        let pad = config.pad_token_id.or_else(|| eos.first().copied());
        let mut run = Self {
            prompt,
            chosen: vec![Vec::new(); batch],
            new_tokens: vec![Vec::new(); batch],
            finished: vec![false; batch],
            next_position: None,
            eos,
            pad,
            routing: inputs.expert_routing.take(),
            inputs,
        };
        run.inputs = run.inputs.logits_to_keep(1);
        if let Some(mask) = run.inputs.attention_mask.clone() {
            if mask.dims() != [batch, seq] {
                return Err(GenerateError::Forward(ForwardError::Shape {
                    name: "attention_mask",
                    found: mask.dims().to_vec(),
                    expected: format!("[{batch}, {seq}] as the prompt"),
                }));
            }
            let mask = read(&mask, "attention_mask")?;
            let (positions, next) = positions(&mask, seq);
            run.inputs.position_ids = Some(run.rows(&positions));
            run.next_position = Some(next);
        }
        Ok(run)
    }

    /// How many tokens the prompt has.
    fn length(&self) -> usize {
        self.prompt.dims()[1]
    }

    /// Checks that a routing holds for so many steps, the first of which takes the prompts.
    fn check_routing(&self, steps: usize) -> Result<(), GenerateError> {
        let Some(routing) = &self.routing else { return Ok(()) };
        let columns = self.length().saturating_add(steps.saturating_sub(1));
        let (len, wanted) = (routing.tokens(), columns.saturating_mul(self.finished.len()));
        if len < wanted {
            return Err(ForwardError::Routing(RoutingError::Tokens { len, wanted }).into());
        }
        Ok(())
    }

    /// Takes the inputs of the next forward pass; the cache goes with them.
    fn inputs(&mut self) -> Result<TextInputs, GenerateError> {
        let expert_routing = self.routing.as_ref().map(|routing| self.routing_of_step(routing)).transpose();
        let expert_routing = expert_routing.map_err(ForwardError::Routing)?;
        let cache = self.inputs.cache.take();
        Ok(TextInputs { cache, expert_routing, ..self.inputs.clone() })
    }

    /// The experts of the tokens of the next forward pass.
    fn routing_of_step(&self, routing: &ExpertRouting) -> Result<ExpertRouting, RoutingError> {
        let (batch, prompt) = (self.finished.len(), self.length());
        let length = prompt + self.chosen.first().map_or(0, Vec::len);
        let columns = self.inputs.input_ids.as_ref().map_or(0, |ids| ids.dims()[1]);
        // the prompts lie one after the other, then come the tokens of each step
        let place = |row: usize, at: usize| {
            if at < prompt { row * prompt + at } else { batch * prompt + (at - prompt) * batch + row }
        };
        let tokens: Vec<usize> =
            (0..batch).flat_map(|row| (length - columns..length).map(move |at| place(row, at))).collect();
        routing.select(&tokens)
    }

    /// One token for each sequence: padding if it has ended.
    fn choose(
        &mut self,
        scores: &mut [f32],
        step: usize,
        processors: &Processors<'_>,
        chooser: &mut Chooser,
    ) -> Result<Vec<i64>, GenerateError> {
        let batch = self.finished.len();
        let vocabulary = scores.len() / batch.max(1);
        let mut tokens = Vec::with_capacity(batch);
        for (row, scores) in scores.chunks_exact_mut(vocabulary.max(1)).enumerate() {
            if self.finished[row] {
                let pad = self.pad.ok_or(GenerateError::NoPadToken { batch })?;
                tokens.push(pad);
                continue;
            }
            processors.process(&self.chosen[row], scores)?;
            let token = chooser.choose(scores).ok_or(GenerateError::NoFiniteScore { row, step })?;
            let token = token as i64;
            tokens.push(token);
            self.new_tokens[row].push(token);
            self.finished[row] = self.eos.contains(&token);
        }
        Ok(tokens)
    }

    /// Makes `tokens` the input of the next step: alone with a cache, else after all others.
    fn append(&mut self, tokens: &[i64]) {
        let batch = tokens.len();
        for (chosen, token) in self.chosen.iter_mut().zip(tokens) {
            chosen.push(*token);
        }
        let next = self.rows(tokens);
        let cached = self.inputs.cache.is_some();
        let joined = |old: Option<Tensor<2, Int>>, new: Tensor<2, Int>| match old {
            Some(old) => Tensor::cat(vec![old, new], 1),
            None => new,
        };
        self.inputs.input_ids = Some(if cached { next } else { joined(self.inputs.input_ids.take(), next) });
        if let Some(types) = self.inputs.token_type_ids.take() {
            // what is added belongs to the text that it continues
            let [_, columns] = types.dims();
            let last = types.clone().slice_dim(1, columns - 1..columns);
            self.inputs.token_type_ids = Some(if cached { last } else { joined(Some(types), last) });
        }
        if let Some(mask) = self.inputs.attention_mask.take() {
            let one = Tensor::ones([batch, 1], (&mask.device(), mask.dtype()));
            self.inputs.attention_mask = Some(joined(Some(mask), one));
        }
        if let Some(next) = self.next_position.take() {
            let positions = self.rows(&next);
            self.next_position = Some(next.into_iter().map(|position| position + 1).collect());
            let old = self.inputs.position_ids.take().filter(|_| !cached);
            self.inputs.position_ids = Some(joined(old, positions));
        }
    }

    /// Integers as a tensor of the prompt's kind, one row for each sequence.
    fn rows(&self, values: &[i64]) -> Tensor<2, Int> {
        let batch = self.finished.len();
        let columns = values.len() / batch.max(1);
        let options = (&self.prompt.device(), self.prompt.dtype());
        Tensor::<1, Int>::from_data(values, options).reshape([batch, columns])
    }

    fn sequences(&self) -> Tensor<2, Int> {
        if self.chosen.iter().all(Vec::is_empty) {
            return self.prompt.clone();
        }
        let chosen = self.rows(&self.chosen.concat());
        Tensor::cat(vec![self.prompt.clone(), chosen], 1)
    }
}

/// Whether anything was recorded into `output`, whatever its key.
fn has_recorded<O: LanguageModelOutput>(output: &O) -> bool {
    output.as_tuple().iter().any(|(_, value)| matches!(value, OutputValue::Captured(_)))
}

/// The scores of the last position of each sequence, one after the other.
fn last_scores<O: LanguageModelOutput>(output: &O) -> Result<Vec<f32>, GenerateError> {
    let logits = output.logits().clone();
    let [_, positions, _] = logits.dims();
    let last = logits.slice_dim(1, positions - 1..positions);
    let data = last.cast(DType::F32).try_into_data();
    data.map_err(|error| error.to_string())
        .and_then(|data| data.try_into_vec::<f32>().map_err(|error| format!("{error:?}")))
        .map_err(|problem| unreadable("logits", problem))
}

/// The integers of a tensor, row by row.
pub(super) fn read(tensor: &Tensor<2, Int>, name: &'static str) -> Result<Vec<i64>, GenerateError> {
    let data = tensor.clone().try_into_data();
    let data = data.map_err(|error| unreadable(name, error.to_string()))?;
    Ok(data.iter::<i64>().collect())
}

fn unreadable(name: &'static str, problem: String) -> GenerateError {
    GenerateError::Forward(ForwardError::Read { name, problem })
}

/// Positions that count real tokens only, and the one that follows for each sequence.
fn positions(mask: &[i64], seq: usize) -> (Vec<i64>, Vec<i64>) {
    let mut positions = Vec::with_capacity(mask.len());
    let mut next = Vec::new();
    for row in mask.chunks_exact(seq.max(1)) {
        let mut count = 0;
        for real in row {
            // Padding gets the first position; nothing looks at it.
            positions.push(if *real == 0 { 0 } else { count });
            count += i64::from(*real != 0);
        }
        next.push(count);
    }
    (positions, next)
}

#[cfg(test)]
mod tests {
    use super::positions;

    #[test]
    fn positions_count_real_tokens() {
        let (at, next) = positions(&[0, 0, 1, 1, 1, 1, 1, 1], 4);
        assert_eq!(at, [0, 0, 0, 1, 0, 1, 2, 3]);
        assert_eq!(next, [2, 4]);
    }
}
