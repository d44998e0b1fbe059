//! Tests pools with real bytes against a flat model, and step by step where the order of events matters.

mod bytes;
mod cache;
mod cases;
mod crash;
mod cuts;
mod dynamic;
mod extents;
mod hand;
mod locks;
mod machine;
mod memory;
mod parts;
mod repair;
