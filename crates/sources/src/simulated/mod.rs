//! The state of a simulation, and its finished zios, as intervals and records like those of the sources.

mod names;
mod snapshot;

pub use names::Names;
pub use snapshot::{CallPlace, DeviceSnapshot, PoolSnapshot, call_wait, devices, pools};
