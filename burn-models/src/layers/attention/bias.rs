use burn::tensor::{Tensor, TensorData};

/// What is added to scores, `[batch or 1, heads or 1, queries or 1, keys or 1]`, read row by row.
pub(super) struct Bias {
    data: TensorData,
    /// Steps from an index to the next, none where one value is for all.
    strides: [usize; 4],
}

impl Bias {
    pub(super) fn new(bias: Tensor<4>) -> Self {
        let dims = bias.dims();
        let mut strides = [0; 4];
        let mut step = 1;
        for (stride, size) in strides.iter_mut().zip(dims).rev() {
            *stride = if size == 1 { 0 } else { step };
            step *= size;
        }
        Self { data: bias.into_data(), strides }
    }

    /// Adds the values of the row that starts at `place`: batch, head, query and key.
    #[inline(always)]
    pub(super) fn add_to(&self, scores: &mut [f32], place: [usize; 4]) {
        let Ok(values) = self.data.as_slice::<f32>() else { unreachable!("it was found to be f32") };
        let start = place.iter().zip(self.strides).map(|(index, stride)| index * stride).sum::<usize>();
        if self.strides[3] == 0 {
            let value = values[start];
            for score in scores {
                *score += value;
            }
        } else {
            let row = &values[start..start + scores.len()];
            for (score, bias) in scores.iter_mut().zip(row) {
                *score += bias;
            }
        }
    }
}
