//! Recording, by behaviour: exactly these values, in this order, and nothing else.

mod burn_operations;
mod cost;
mod defaults;
mod early_exit;
mod model;
mod nested;
mod parts;
mod recorded;
mod refused;
mod repeated;
mod selected;
mod state;
