//! Tests the engine with published test vectors, and with random histories on which it must agree with a
//! naive model that was written from the semantics alone.

mod bounded;
mod driver;
mod events;
mod history;
mod machine;
mod naive;
mod naive_rule;
mod properties;
mod stops;
mod told;
mod updates;
mod vectors;
