//! Tests pools with real bytes against a flat model. Where the order of events matters, a test drives the
//! pool step by step.

mod bytes;
mod cache;
mod cases;
mod counted;
mod crash;
mod cuts;
mod dynamic;
mod extents;
mod hand;
mod lent;
mod locks;
mod machine;
mod memory;
mod overhead;
mod parts;
mod repair;
mod tuned;
mod versions;
