//! Module classes, the slots that hold their implementations, and how both are constructed.

mod init;

pub use init::Init;
