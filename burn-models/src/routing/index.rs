/// A number type in which serving engines keep the index of an expert.
pub trait ExpertIndex: Copy {
    /// The type's name.
    const NAME: &'static str;

    /// The index in this type, if it fits.
    fn from_expert(expert: u32) -> Option<Self>;

    /// The index, negative where it is one.
    fn to_expert(self) -> i64;
}

macro_rules! expert_index {
    ($($ty:ty),*) => { $(
        impl ExpertIndex for $ty {
            const NAME: &'static str = stringify!($ty);

            fn from_expert(expert: u32) -> Option<Self> {
                Self::try_from(expert).ok()
            }

            fn to_expert(self) -> i64 {
                i64::from(self)
            }
        }
    )* };
}
expert_index!(u8, u16, i32, u32, i64);
