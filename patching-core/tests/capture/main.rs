//! Recording, by behaviour: exactly these values, in this order, and nothing else.

mod model;
mod recorded;
