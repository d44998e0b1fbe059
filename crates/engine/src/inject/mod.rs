//! Injection: which rules a zio meets, what they ask of it, and when their lanes are free.

mod service;
mod spec;

pub use service::{QuantileError, QuantileTable, Service};
pub use spec::{
    Effect, GroupId, LANES_MAX, Limit, Mode, RULES_MAX, RuleId, RuleSpec, SpecError,
};
