//! The command-line tool, driven as a user drives it: the built program, its files and its exit status.

mod capture;
mod convert;
mod default_model;
mod errors;
mod generation;
mod plan;
mod support;
