//! Converting elements.

use burn::tensor::{Bytes, DType, TensorData};
use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};

use super::error::LoadError;

/// `data` with elements of type `to`; the error is one of a load.
pub(crate) fn convert(data: TensorData, key: &str, to: DType) -> Result<TensorData, LoadError> {
    let from = data.dtype();
    converted(data, to).map_err(|reason| LoadError::Convert { key: key.to_owned(), from, to, reason })
}

/// `data` with elements of type `to`, or the reason why not.
///
/// No number becomes another kind of number: integers do not wrap, and what is finite does not become infinite.
pub(crate) fn converted(data: TensorData, to: DType) -> Result<TensorData, String> {
    let from = data.dtype();
    if from == to {
        return Ok(data);
    }
    if from.is_int() || from.is_uint() {
        check_range(&data, to)?;
    }
    if let Some(value) = first_overflow(&data, to) {
        return Err(format!("{value} is out of range"));
    }
    // The common case by far, and many times faster this way than element by element.
    let widened = match (from, to) {
        (DType::BF16, DType::F32) => widen::<bf16>(&data),
        (DType::F16, DType::F32) => widen::<f16>(&data),
        _ => None,
    };
    match widened {
        Some(elements) => TensorData::try_from_bytes(Bytes::from_elems(elements), data.shape().clone(), to),
        None => data.try_cast(to),
    }
    .map_err(|error| error.to_string())
}

fn widen<E: bytemuck::AnyBitPattern>(data: &TensorData) -> Option<Vec<f32>>
where
    [E]: HalfFloatSliceExt,
{
    let elements: &[E] = bytemuck::try_cast_slice(data.bytes()).ok()?;
    let mut widened = vec![0.0; elements.len()];
    elements.convert_to_f32_slice(&mut widened);
    Some(widened)
}

/// Whether every integer has a place in the type `to`.
fn check_range(data: &TensorData, to: DType) -> Result<(), String> {
    let (low, high): (i128, i128) = match to {
        DType::I64 => (i64::MIN.into(), i64::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::U64 => (0, u64::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        DType::U16 => (0, u16::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        _ => return Ok(()),
    };
    let out_of_range = match data.dtype() {
        DType::I64 => first_outside::<i64>(data, low, high),
        DType::I32 => first_outside::<i32>(data, low, high),
        DType::I16 => first_outside::<i16>(data, low, high),
        DType::I8 => first_outside::<i8>(data, low, high),
        DType::U64 => first_outside::<u64>(data, low, high),
        DType::U32 => first_outside::<u32>(data, low, high),
        DType::U16 => first_outside::<u16>(data, low, high),
        DType::U8 => first_outside::<u8>(data, low, high),
        _ => None,
    };
    out_of_range.map_or(Ok(()), |value| Err(format!("{value} is out of range")))
}

fn first_outside<E: bytemuck::Pod + Into<i128>>(data: &TensorData, low: i128, high: i128) -> Option<i128> {
    elements::<E>(data).map(Into::into).find(|value| !(low..=high).contains(value))
}

/// The first finite number that would be infinite in the type `to`.
fn first_overflow(data: &TensorData, to: DType) -> Option<f64> {
    // half a step beyond the largest number, from where on rounding gives infinity
    let limit = match to {
        DType::F16 => 65_520.0,
        DType::BF16 => (2.0 - 2.0_f64.powi(-8)) * 2.0_f64.powi(127),
        DType::F32 | DType::Flex32 => (2.0 - 2.0_f64.powi(-24)) * 2.0_f64.powi(127),
        _ => return None,
    };
    match (data.dtype(), to) {
        (DType::F64, _) => first_beyond::<f64>(data, limit),
        (DType::F32 | DType::Flex32, DType::F16 | DType::BF16) => first_beyond::<f32>(data, limit),
        (DType::BF16, DType::F16) => first_beyond::<bf16>(data, limit),
        _ => None,
    }
}

fn first_beyond<E: bytemuck::Pod + Into<f64>>(data: &TensorData, limit: f64) -> Option<f64> {
    elements::<E>(data).map(Into::into).find(|value| value.is_finite() && value.abs() >= limit)
}

/// The elements, wherever in memory they begin.
fn elements<E: bytemuck::Pod>(data: &TensorData) -> impl Iterator<Item = E> {
    data.bytes().chunks_exact(size_of::<E>()).map(bytemuck::pod_read_unaligned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_widen_exactly() {
        let values = [0.0_f32, -0.0, 1.5, -65504.0, f32::INFINITY, 6.0e-8];
        let halves: Vec<f16> = values.iter().copied().map(f16::from_f32).collect();
        let expected: Vec<f32> = halves.iter().map(|half| half.to_f32()).collect();
        let widened = convert(TensorData::new(halves, [2, 3]), "a", DType::F32).expect("converts");
        assert_eq!(widened.as_slice::<f32>().expect("f32"), expected);

        let brains: Vec<bf16> = values.iter().copied().map(bf16::from_f32).collect();
        let expected: Vec<f32> = brains.iter().map(|brain| brain.to_f32()).collect();
        let widened = convert(TensorData::new(brains, [6]), "a", DType::F32).expect("converts");
        assert_eq!(widened.as_slice::<f32>().expect("f32"), expected);
    }

    #[test]
    fn finite_numbers_stay_finite() {
        let floats = |value: f32| TensorData::new(vec![1.0_f32, f32::NEG_INFINITY, f32::NAN, value], [4]);
        let error = convert(floats(-70_000.0), "a", DType::F16).expect_err("too large");
        assert_eq!(error.to_string(), "cannot convert `a` from F32 to F16: -70000 is out of range");
        let kept = convert(floats(65_519.0), "a", DType::F16).expect("rounds down");
        let kept: Vec<f32> = kept.iter::<f32>().collect();
        assert_eq!((kept[1], kept[3]), (f32::NEG_INFINITY, 65_504.0));
        assert!(kept[2].is_nan());

        let brains = TensorData::new(vec![bf16::from_f32(1e6), bf16::INFINITY], [2]);
        assert!(convert(brains.clone(), "a", DType::F16).is_err());
        assert!(convert(brains, "a", DType::F32).is_ok());
        // what rounds to infinity, and what is a little smaller
        for (to, narrow) in [(DType::BF16, f32::MAX), (DType::F16, 65_520.0)] {
            assert!(convert(floats(narrow), "a", to).is_err(), "{to:?}");
            let below = convert(floats(narrow * (1.0 - 1.0 / 256.0)), "a", to).expect("fits");
            assert!(below.iter::<f32>().last().is_some_and(f32::is_finite), "{to:?}");
        }
        assert!(convert(TensorData::new(vec![1e39_f64], [1]), "a", DType::F32).is_err());
    }

    #[test]
    fn integers_never_wrap() {
        let data = || TensorData::new(vec![1_i64, 1 << 40], [2]);
        let error = convert(data(), "ids", DType::I32).expect_err("too large");
        assert_eq!(error.to_string(), "cannot convert `ids` from I64 to I32: 1099511627776 is out of range");
        assert!(convert(data(), "ids", DType::U64).is_ok());
    }
}
