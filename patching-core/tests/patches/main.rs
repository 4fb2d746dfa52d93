//! Replacing classes: what is replaced, what is not, and that nothing leaks.

mod constructing;
mod leaks;
mod live;
mod loading;
mod matching;
mod model;
mod recording;
mod registry;
