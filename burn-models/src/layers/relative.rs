use burn::tensor::{Int, Tensor, TensorData};

/// Relative positions in buckets: small distances have one each, larger ones share them by their logarithm, and all
/// beyond a largest one share the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelativeBuckets {
    /// Whether keys after a query count, too: half of the buckets are for them. Else they are all in the first.
    pub bidirectional: bool,
    /// The number of buckets: at least 2, or 4 if bidirectional.
    pub num_buckets: usize,
    /// From here on all distances share the last bucket: more than half of the buckets of one side.
    pub max_distance: usize,
}

impl RelativeBuckets {
    /// The bucket of a key that stands `relative_position` after a query; negative: before it.
    ///
    /// In f32, as the reference computes it: at a distance whose logarithm meets the edge of a bucket, rounding decides.
    pub fn bucket(&self, relative_position: i64) -> i64 {
        let (buckets, side) = match self.bidirectional {
            true => (self.num_buckets / 2, if relative_position > 0 { self.num_buckets / 2 } else { 0 }),
            false => (self.num_buckets, 0),
        };
        let distance = match self.bidirectional {
            true => relative_position.unsigned_abs(),
            false => relative_position.min(0).unsigned_abs(),
        };
        let exact = buckets / 2;
        let in_side = if distance < exact as u64 {
            distance as i64
        } else {
            let logarithm = |x: f64| x.ln() as f32;
            let from_exact = logarithm(f64::from(distance as f32 / exact as f32));
            let whole = logarithm(self.max_distance as f64 / exact as f64);
            let step = (from_exact / whole * (buckets - exact) as f32) as i64;
            (exact as i64).saturating_add(step).clamp(0, buckets as i64 - 1)
        };
        side as i64 + in_side
    }

    /// What each query adds to the scores of each key: the entry of their bucket, for each head.
    ///
    /// Which bucket it is follows from lengths alone, so nothing is read back from the device.
    ///
    /// # Shapes
    ///
    /// - `table`: `[buckets, heads]`
    /// - output: `[1, heads, queries, keys]`, where the first query stands at position `past` of the keys
    pub fn bias(&self, table: Tensor<2>, [queries, keys]: [usize; 2], past: usize) -> Tensor<4> {
        let [_, heads] = table.dims();
        let device = table.device();
        // one entry for each distance, from that of the last query and the first key on
        let first = 1 - (past + queries) as i64;
        let distances = (queries + keys).saturating_sub(1);
        let buckets: Vec<i64> = (first..first + distances as i64).map(|relative| self.bucket(relative)).collect();
        let buckets = Tensor::<1, Int>::from_data(TensorData::new(buckets, [distances]), &device);
        let by_distance = table.select(0, buckets).swap_dims(0, 1);
        if queries == 1 {
            return by_distance.reshape([1, heads, 1, keys]);
        }
        let at_query = Tensor::<1, Int>::arange(0..queries as i64, &device).reshape([queries, 1]);
        let at_key = Tensor::<1, Int>::arange(0..keys as i64, &device).reshape([1, keys]);
        let distance = at_key.expand([queries, keys]) - at_query.expand([queries, keys]) + (queries as i64 - 1);
        by_distance.select(1, distance.reshape([queries * keys])).reshape([1, heads, queries, keys])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `[bidirectional, buckets, max distance]`, and where each bucket begins, from far before a query to far after it.
    #[derive(serde::Deserialize)]
    struct Known {
        bidirectional: bool,
        num_buckets: usize,
        max_distance: usize,
        /// `[relative position, bucket]`: from here on, up to the next entry.
        runs: Vec<[i64; 2]>,
    }

    /// The largest distance in the reference's numbers.
    const FAR: i64 = 5000;

    #[test]
    fn buckets_are_the_reference_s() {
        let known = include_str!("../../tests/fixtures/relative_buckets.json");
        let known: Vec<Known> = serde_json::from_str(known).expect("valid");
        assert!(known.len() > 50);
        for Known { bidirectional, num_buckets, max_distance, runs } in known {
            let buckets = RelativeBuckets { bidirectional, num_buckets, max_distance };
            let mut expected = 0;
            let mut runs = runs.into_iter().peekable();
            for relative in -FAR..=FAR {
                if let Some([_, bucket]) = runs.next_if(|[from, _]| *from == relative) {
                    expected = bucket;
                }
                assert_eq!(buckets.bucket(relative), expected, "{buckets:?} at {relative}");
            }
        }
    }

    #[test]
    fn extreme_distances_have_a_bucket() {
        for bidirectional in [true, false] {
            let buckets = RelativeBuckets { bidirectional, num_buckets: 8, max_distance: 10 };
            for relative in [i64::MIN, i64::MAX] {
                assert!((0..8).contains(&buckets.bucket(relative)));
            }
        }
    }

    #[cfg(feature = "flex")]
    #[test]
    fn a_bias_has_the_entry_of_each_pair() {
        let device = burn::tensor::Device::flex();
        let table = Tensor::<1, Int>::arange(0..16, &device).float().reshape([8, 2]);
        for bidirectional in [true, false] {
            let buckets = RelativeBuckets { bidirectional, num_buckets: 8, max_distance: 10 };
            for (queries, keys, past) in [(1, 1, 0), (1, 9, 8), (4, 4, 0), (3, 12, 9), (12, 12, 0)] {
                let bias = buckets.bias(table.clone(), [queries, keys], past);
                assert_eq!(bias.dims(), [1, 2, queries, keys]);
                let values: Vec<i64> = bias.to_data().iter::<i64>().collect();
                let expected = (0..2).flat_map(|head| {
                    (0..queries).flat_map(move |query| {
                        (0..keys).map(move |key| 2 * buckets.bucket(key as i64 - (query + past) as i64) + head)
                    })
                });
                assert_eq!(values, expected.collect::<Vec<_>>(), "{queries} queries, {keys} keys, after {past}");
            }
        }
    }
}
