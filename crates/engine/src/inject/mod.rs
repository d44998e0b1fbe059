//! Injection: which rules match a zio, what they do to it, and when their lanes are free.

mod bandwidth;
pub(crate) mod booking;
mod damage;
mod fate;
pub(crate) mod id;
mod injector;
mod lane;
mod rule;
mod service;
pub(crate) mod spec;
mod when;

pub(crate) use booking::Kind;
pub use damage::{Damage, DataFault};
pub(crate) use fate::Gaps;
pub use id::{GroupId, RuleId};
pub(crate) use injector::Injector;
pub(crate) use rule::Rule;
pub use service::{QuantileError, QuantileTable, Service};
pub use spec::{Count, Delay, Effect, LANES_MAX, Mode, RULES_MAX, Ramp, RuleSpec, SpecError};
pub use when::{Cycle, CycleError, When};
