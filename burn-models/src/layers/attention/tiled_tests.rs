use super::tiled::{is_for, tiled_attention};
use super::{Attention, eager_attention, sdpa_attention};
use crate::layers::AttentionMask;
use burn::tensor::{DType, Device, Distribution, Tensor};

fn random<const D: usize>(shape: [usize; D]) -> Tensor<D> {
    Tensor::random(shape, Distribution::Normal(0.0, 1.0), &Device::flex())
}

/// `[batch, heads, seq, size]` as projections leave it: heads next to each other in memory.
fn heads([batch, heads, seq, size]: [usize; 4]) -> Tensor<4> {
    random([batch, seq, heads, size]).swap_dims(1, 2)
}

/// Query heads, key heads, queries, keys, size of keys and of values.
fn call(batch: usize, [query_heads, key_heads, queries, keys, size, value_size]: [usize; 6]) -> Attention {
    Attention {
        query: heads([batch, query_heads, queries, size]),
        key: heads([batch, key_heads, keys, size]),
        value: heads([batch, key_heads, keys, value_size]),
        mask: AttentionMask { bias: None, is_causal: false },
        position_bias: None,
        scaling: 1.0 / (size as f64).sqrt(),
        weights_wanted: false,
    }
}

fn copy(call: &Attention) -> Attention {
    Attention {
        query: call.query.clone(),
        key: call.key.clone(),
        value: call.value.clone(),
        mask: call.mask.clone(),
        position_bias: call.position_bias.clone(),
        ..*call
    }
}

fn is_close(found: Tensor<4>, expected: Tensor<4>, tolerance: f32) {
    assert_eq!((found.dims(), found.dtype()), (expected.dims(), expected.dtype()));
    let (found, expected) = (found.into_data(), expected.into_data());
    for (found, expected) in found.iter::<f32>().zip(expected.iter::<f32>()) {
        assert!((found - expected).abs() <= tolerance, "{found}, expected {expected}");
    }
}

fn check(call: Attention) {
    assert!(is_for(&call));
    is_close(tiled_attention(copy(&call)), eager_attention(call).0, 5e-6);
}

/// Shapes with one tile, several, several blocks of keys, shared heads, values of another size.
const SHAPES: [(usize, [usize; 6]); 9] = [
    (1, [1, 1, 1, 1, 1, 1]),
    (5, [3, 3, 7, 7, 4, 4]),
    (3, [4, 4, 33, 21, 8, 5]),
    (2, [2, 2, 200, 40, 8, 8]),
    (1, [2, 2, 50, 1030, 16, 16]),
    (2, [4, 2, 9, 9, 8, 8]),
    (1, [6, 1, 17, 600, 8, 12]),
    (1, [1, 1, 400, 513, 8, 8]),
    (40, [2, 2, 16, 16, 64, 64]),
];

#[test]
fn it_is_the_formula() {
    for (batch, numbers) in SHAPES {
        check(call(batch, numbers));
    }
}

#[test]
fn causal_order_is_the_formulas() {
    for (batch, numbers) in SHAPES {
        let [_, _, queries, keys, ..] = numbers;
        let mut call = call(batch, numbers);
        call.mask.is_causal = true;
        if queries <= keys {
            check(call);
        }
    }
}

#[test]
fn biases_are_added() {
    for (batch, numbers) in SHAPES {
        let [heads, _, queries, keys, ..] = numbers;
        for shape in [[batch, 1, queries, keys], [1, heads, queries, keys], [batch, heads, 1, keys], [1, 1, queries, 1]]
        {
            let mut call = call(batch, numbers);
            call.mask.bias = Some(random(shape));
            check(copy(&call));
            call.position_bias = Some(random([1, heads, keys, queries]).swap_dims(2, 3));
            check(copy(&call));
            call.mask.bias = None;
            check(call);
        }
    }
}

#[test]
fn what_is_masked_has_no_weight() {
    let mut call = call(2, [3, 3, 5, 700, 8, 8]);
    let bias = Tensor::<4>::zeros([2, 1, 5, 700], &Device::flex());
    let lowest = Tensor::<4>::full([2, 1, 5, 600], f32::MIN, &Device::flex());
    call.mask.bias = Some(bias.slice_assign([0..2, 0..1, 0..5, 0..600], lowest));
    check(copy(&call));
    // whatever lies there
    let other = copy(&call);
    let value = other.value.clone().slice_fill([0..2, 0..3, 0..600, 0..8], 1e6);
    is_close(tiled_attention(Attention { value, ..other }), tiled_attention(copy(&call)), 0.0);
    // the first block has nothing that counts
    let none = Tensor::<4>::full([2, 1, 5, 600], f32::NEG_INFINITY, &Device::flex());
    call.mask.bias = call.mask.bias.map(|bias| bias.slice_assign([0..2, 0..1, 0..5, 0..600], none));
    check(copy(&call));
    // a row in which all is masked
    call.mask.bias = Some(Tensor::full([2, 1, 5, 700], f32::MIN, &Device::flex()));
    check(call);
}

#[test]
fn other_types_are_left_to_burn() {
    for dtype in [DType::F16, DType::BF16, DType::F64] {
        let call = call(2, [3, 3, 5, 9, 8, 8]);
        let cast = |x: &Tensor<4>| x.clone().cast(dtype);
        let narrow =
            Attention { query: cast(&call.query), key: cast(&call.key), value: cast(&call.value), ..copy(&call) };
        assert!(!is_for(&narrow));
        let (found, _) = sdpa_attention(narrow);
        assert_eq!(found.dtype(), dtype);
        is_close(found.cast(DType::F32), eager_attention(call).0, 2e-2);
    }
}

#[cfg(feature = "autodiff")]
#[test]
fn gradients_flow() {
    let device = Device::flex().autodiff();
    let call = call(1, [2, 2, 3, 4, 2, 2]);
    let gradient = |attention: fn(Attention) -> super::AttentionOutput| {
        let on_graph = |x: &Tensor<4>| Tensor::from_data(x.clone().into_data(), &device).require_grad();
        let inputs = Attention {
            query: on_graph(&call.query),
            key: on_graph(&call.key),
            value: on_graph(&call.value),
            ..copy(&call)
        };
        let query = inputs.query.clone();
        let gradients = attention(inputs).0.sum().backward();
        query.grad(&gradients).expect("the query is on the graph")
    };
    is_close(gradient(sdpa_attention), gradient(eager_attention), 0.0);
}
