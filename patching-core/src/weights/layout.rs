//! How a checkpoint lays out what a model holds.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use burn::tensor::Tensor;
use burn::tensor::kind::Basic;

/// One step from a checkpoint's tensors to a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// Exchanges two dimensions.
    Transpose {
        /// The one.
        dim0: usize,
        /// The other.
        dim1: usize,
    },
    /// Takes a tensor without dimensions for one of shape `[1]`: Burn has no tensors without dimensions.
    Scalar,
}

impl Operation {
    /// The shape before this operation, given the one after it; `None` where it cannot have been applied.
    pub(crate) fn source_shape(self, shape: &[usize]) -> Option<Vec<usize>> {
        match self {
            Self::Transpose { dim0, dim1 } => {
                let mut shape = shape.to_vec();
                if dim0.max(dim1) >= shape.len() {
                    return None;
                }
                shape.swap(dim0, dim1);
                Some(shape)
            }
            Self::Scalar => (shape == [1]).then(Vec::new),
        }
    }

    /// Does it, or undoes it: each of them is its own inverse.
    pub(crate) fn apply<const D: usize, K: Basic>(self, tensor: Tensor<D, K>) -> Tensor<D, K> {
        match self {
            Self::Transpose { dim0, dim1 } => tensor.swap_dims(dim0, dim1),
            // Only the shape in the file differs: there alone a tensor has no dimensions.
            Self::Scalar => tensor,
        }
    }
}

/// How one parameter of a layer looks in a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParameterLayout {
    name: Option<Cow<'static, str>>,
    operations: Vec<Operation>,
}

impl ParameterLayout {
    /// The same name and the same shape.
    pub const fn same() -> Self {
        Self { name: None, operations: Vec::new() }
    }

    /// Its name in the checkpoint.
    #[must_use]
    pub fn named(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Two dimensions are exchanged.
    #[must_use]
    pub fn transposed(mut self, dim0: usize, dim1: usize) -> Self {
        self.operations.push(Operation::Transpose { dim0, dim1 });
        self
    }

    /// A tensor without dimensions there, one of shape `[1]` here.
    #[must_use]
    pub fn scalar(mut self) -> Self {
        self.operations.push(Operation::Scalar);
        self
    }

    /// The steps from the checkpoint to the parameter.
    pub(crate) fn operations(&self) -> &[Operation] {
        &self.operations
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

/// Layouts by the layer that a parameter belongs to, or by its path.
///
/// A layer is told by the name of its Rust type, as `#[derive(Module)]` gives it: a layer of one's own that is called
/// `Linear` is laid out like Burn's. A rule for a path beats a rule for a type; of two for the same, the later.
/// A parameter without a rule is in the checkpoint just as it is in the model.
///
/// ```
/// use patching_core::weights::{LayoutRules, ParameterLayout};
///
/// let rules = LayoutRules::default()
///     .layer("MyLinear", "kernel", ParameterLayout::same().named("weight").transposed(0, 1))
///     // GPT-2 stores these as Burn does.
///     .path("c_attn.weight", ParameterLayout::same());
/// # let _ = rules;
/// ```
#[derive(Debug, Clone, Default)]
pub struct LayoutRules {
    layers: BTreeMap<Cow<'static, str>, Vec<(Cow<'static, str>, ParameterLayout)>>,
    paths: Vec<(Cow<'static, str>, ParameterLayout)>,
    /// Places whose last segment is no part of a key.
    transparent: HashSet<String>,
}

impl LayoutRules {
    /// Those of Burn's own layers.
    pub fn standard() -> Self {
        let weight = || ParameterLayout::same().named("weight");
        let bias = || ParameterLayout::same().named("bias");
        let mut rules = Self::default()
            .layer("Linear", "weight", ParameterLayout::same().transposed(0, 1))
            .layer("RmsNorm", "gamma", weight())
            .layer("PRelu", "alpha", weight());
        // `running_mean` and `running_var` have the same names on both sides; so have embeddings and convolutions.
        for layer in ["LayerNorm", "GroupNorm", "InstanceNorm", "BatchNorm"] {
            rules = rules.layer(layer, "gamma", weight()).layer(layer, "beta", bias());
        }
        rules
    }

    /// Lays out the field `parameter` of every layer of the type `layer`.
    #[must_use]
    pub fn layer(
        mut self,
        layer: impl Into<Cow<'static, str>>,
        parameter: impl Into<Cow<'static, str>>,
        layout: ParameterLayout,
    ) -> Self {
        self.layers.entry(layer.into()).or_default().push((parameter.into(), layout));
        self
    }

    /// Lays out every parameter whose path in the model is `path` or ends in it, at a whole segment.
    #[must_use]
    pub fn path(mut self, path: impl Into<Cow<'static, str>>, layout: ParameterLayout) -> Self {
        self.paths.push((path.into(), layout));
        self
    }

    /// These rules for a model that has slots at `places` whose names are no part of a key, because they hold the
    /// original of the replacement around them.
    pub(crate) fn with_transparent(mut self, places: HashSet<String>) -> Self {
        self.transparent.extend(places);
        self
    }

    /// Whether the last segment of `place` is no part of a key.
    pub(crate) fn is_transparent(&self, place: &str) -> bool {
        self.transparent.contains(place)
    }

    /// Whether any path is.
    pub(crate) fn has_transparent(&self) -> bool {
        !self.transparent.is_empty()
    }

    /// These rules, and where none applies those of `other`.
    #[must_use]
    pub fn over(mut self, other: Self) -> Self {
        for (layer, mut rules) in other.layers {
            let own = self.layers.entry(layer).or_default();
            rules.append(own);
            *own = rules;
        }
        let mut paths = other.paths;
        paths.append(&mut self.paths);
        self.paths = paths;
        self.transparent.extend(other.transparent);
        self
    }

    /// The rule for the field `parameter` of a `layer` at `path`.
    pub(crate) fn find(&self, path: &str, layer: &str, parameter: &str) -> Option<&ParameterLayout> {
        let by_path = self.paths.iter().rev().find(|(suffix, _)| ends_in(path, suffix));
        let by_layer = || self.layers.get(layer)?.iter().rev().find(|(name, _)| name == parameter);
        by_path.or_else(by_layer).map(|(_, layout)| layout)
    }
}

/// Whether `path` is `suffix` or ends in it after a dot.
fn ends_in(path: &str, suffix: &str) -> bool {
    path.strip_suffix(suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_beat_layers_and_later_rules_beat_earlier_ones() {
        let rules = LayoutRules::standard().path("c_attn.weight", ParameterLayout::same()).layer(
            "RmsNorm",
            "gamma",
            ParameterLayout::same().named("scale"),
        );
        let find = |path, layer, name| rules.find(path, layer, name).cloned();

        assert_eq!(find("h.0.c_attn.weight", "Linear", "weight"), Some(ParameterLayout::same()));
        assert_eq!(find("h.0.xc_attn.weight", "Linear", "weight"), Some(ParameterLayout::same().transposed(0, 1)));
        assert_eq!(find("norm.gamma", "RmsNorm", "gamma"), Some(ParameterLayout::same().named("scale")));
        assert_eq!(find("norm.gamma", "MyNorm", "gamma"), None);
    }

    #[test]
    fn rules_laid_over_others_come_first() {
        let own = LayoutRules::default().layer("Linear", "weight", ParameterLayout::same());
        let rules = own.over(LayoutRules::standard());
        assert_eq!(rules.find("a.weight", "Linear", "weight"), Some(&ParameterLayout::same()));
        assert!(rules.find("a.gamma", "LayerNorm", "gamma").is_some());
    }

    #[test]
    fn an_operation_knows_the_shape_it_was_applied_to() {
        let transpose = Operation::Transpose { dim0: 0, dim1: 1 };
        assert_eq!(transpose.source_shape(&[2, 3]), Some(vec![3, 2]));
        assert_eq!(transpose.source_shape(&[2]), None);
        assert_eq!(Operation::Scalar.source_shape(&[1]), Some(vec![]));
        assert_eq!(Operation::Scalar.source_shape(&[2]), None);
    }
}
