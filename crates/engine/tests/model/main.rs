//! Judges the engine by a naive model written from the semantics alone, by the published test
//! vectors, and by random histories on which the engine and the model must agree.

mod bounded;
mod driver;
mod events;
mod history;
mod machine;
mod naive;
mod naive_rule;
mod properties;
mod stops;
mod updates;
mod vectors;
