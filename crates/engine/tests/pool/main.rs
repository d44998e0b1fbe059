//! Pools: with real bytes beside a flat model, and step by step where an order of events matters.

mod bytes;
mod cases;
mod hand;
mod machine;
