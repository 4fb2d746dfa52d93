//! The macros of `patching-core`.
