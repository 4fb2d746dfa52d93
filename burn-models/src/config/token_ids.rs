use serde::{Deserialize, Serialize};

/// One token id or several, as `eos_token_id` may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TokenIds {
    /// `"eos_token_id": 2`
    One(i64),
    /// `"eos_token_id": [2, 32000]`
    Many(Vec<i64>),
}

impl TokenIds {
    /// The ids in order.
    pub fn as_slice(&self) -> &[i64] {
        match self {
            Self::One(id) => std::slice::from_ref(id),
            Self::Many(ids) => ids,
        }
    }

    /// Whether `id` is one of them.
    pub fn contains(&self, id: i64) -> bool {
        self.as_slice().contains(&id)
    }

    /// The first id, if there is one.
    pub fn first(&self) -> Option<i64> {
        self.as_slice().first().copied()
    }
}

impl From<i64> for TokenIds {
    fn from(id: i64) -> Self {
        Self::One(id)
    }
}

impl From<Vec<i64>> for TokenIds {
    fn from(ids: Vec<i64>) -> Self {
        Self::Many(ids)
    }
}

impl<const N: usize> From<[i64; N]> for TokenIds {
    fn from(ids: [i64; N]) -> Self {
        Self::Many(ids.to_vec())
    }
}
