use crate::class::erase::Kind;
use burn::tensor::{Bool, DType, Int, Tensor, TensorData, kind::Basic};
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// A tensor whose rank and kind are known only when the program runs. Shares its storage.
#[derive(Clone)]
pub struct AnyTensor {
    kind: Kind,
    shape: Vec<usize>,
    dtype: DType,
    tensor: Arc<dyn Any + Send + Sync>,
}

macro_rules! each_rank {
    ($any:expr, $make:expr; $($n:literal)*) => { $(
        {
            if let Some(tensor) = $any.downcast_ref::<Tensor<$n>>() { return Some($make(Kind::Float, tensor.dims().to_vec(), tensor.dtype())) }
            if let Some(tensor) = $any.downcast_ref::<Tensor<$n, Int>>() { return Some($make(Kind::Int, tensor.dims().to_vec(), tensor.dtype())) }
            if let Some(tensor) = $any.downcast_ref::<Tensor<$n, Bool>>() { return Some($make(Kind::Bool, tensor.dims().to_vec(), tensor.dtype())) }
        }
    )* };
}

macro_rules! each_data {
    ($any:expr; $($n:literal)*) => { $(
        if let Some(tensor) = $any.downcast_ref::<Tensor<$n>>() { return tensor.to_data() }
        if let Some(tensor) = $any.downcast_ref::<Tensor<$n, Int>>() { return tensor.to_data() }
        if let Some(tensor) = $any.downcast_ref::<Tensor<$n, Bool>>() { return tensor.to_data() }
    )* };
}

impl AnyTensor {
    /// The tensor in `value`, if it is one of at most 8 dimensions.
    pub fn from_any<T: Clone + Send + Sync + 'static>(value: &T) -> Option<Self> {
        let any: &dyn Any = value;
        let make = |kind, shape, dtype| Self { kind, shape, dtype, tensor: Arc::new(value.clone()) };
        each_rank!(any, make; 1 2 3 4 5 6 7 8);
        None
    }

    /// Whether its elements are floats, integers or booleans.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Its shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The tensor itself, if it has this rank and kind.
    pub fn downcast<const D: usize, K: Basic + 'static>(&self) -> Option<Tensor<D, K>> {
        self.tensor.downcast_ref::<Tensor<D, K>>().cloned()
    }

    /// Its values, copied from the device.
    pub fn to_data(&self) -> TensorData {
        each_data!(self.tensor; 1 2 3 4 5 6 7 8);
        unreachable!("an `AnyTensor` is made of a tensor of 1 to 8 dimensions")
    }
}

impl fmt::Debug for AnyTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?}", self.dtype, self.shape)
    }
}
