//! Parameters inside a class that may be replaced by another, where a model needs them itself.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{DType, Tensor};
use std::any::Any;

/// The matrix that is called `name` in checkpoints (`word_embeddings.weight`), wherever in `module` it is; for the table
/// of embeddings that a head shares.
pub fn matrix_of<M: Module>(module: &M, name: &str) -> Option<Tensor<2>> {
    let mut search = Matrix { name, place: Vec::new(), found: None };
    module.visit(&mut search);
    search.found
}

/// The element type of the first parameter of `module` that is a float.
pub fn float_dtype_of<M: Module>(module: &M) -> Option<DType> {
    let mut search = FloatDType(None);
    module.visit(&mut search);
    search.0
}

struct Matrix<'a> {
    name: &'a str,
    place: Vec<String>,
    found: Option<Tensor<2>>,
}

impl Matrix<'_> {
    fn is_here(&self) -> bool {
        let mut place = self.place.iter().rev();
        self.name.rsplit('.').all(|segment| place.next().is_some_and(|here| here == segment))
    }
}

impl ModuleVisitor for Matrix<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.place.push(name.to_owned());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.place.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if D == 2 && self.found.is_none() && self.is_here() {
            let value: Box<dyn Any> = Box::new(param.val());
            self.found = value.downcast().ok().map(|value| *value);
        }
    }
}

struct FloatDType(Option<DType>);

impl ModuleVisitor for FloatDType {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.0.is_none() {
            self.0 = Some(param.val().dtype());
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::layers::{new_embedding, new_layer_norm};
    use burn::nn::{Embedding, LayerNorm};
    use burn::tensor::Device;

    #[derive(Module, Debug)]
    struct Inner {
        norm: LayerNorm,
        table: Embedding,
    }

    #[derive(Module, Debug)]
    struct Outer {
        my_table: Embedding,
        inner: Inner,
    }

    #[test]
    fn a_matrix_is_found_by_whole_segments() {
        let device = Device::flex();
        let table = |rows| new_embedding(rows, 4, 0.1, &device);
        let outer =
            Outer { my_table: table(3), inner: Inner { norm: new_layer_norm(4, 1e-5, &device), table: table(5) } };
        let rows = |name| matrix_of(&outer, name).map(|found| found.dims()[0]);
        assert_eq!(rows("table.weight"), Some(5));
        assert_eq!(rows("inner.table.weight"), Some(5));
        assert_eq!(rows("my_table.weight"), Some(3));
        assert_eq!((rows("norm.gamma"), rows("outer.inner.table.weight")), (None, None));
        assert_eq!(float_dtype_of(&outer), Some(DType::F32));
    }
}
