//! The model of a slow disk: rules, lanes, suspension, counters and histograms.
//!
//! The engine is a pure state machine. It has no clock, no threads, no bytes and no floats, and its only
//! random numbers are those that follow from the seeds that the caller sets; `#![no_std]` and
//! `forbid(unsafe_code)` make the compiler check most of this. Every change goes through [`Engine::step`];
//! between two steps, the engine does nothing. [`Engine::next_deadline`] says when the driver must step again
//! with [`Input::Tick`]. In real time, a shard waits for that moment; in simulated time, the simulation sets
//! its clock to that moment.
//!
//! Equal seeds and equal inputs give equal actions, on any machine.

#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod bytes;
mod client;
mod command;
mod deadlines;
mod depths;
mod disk;
mod engine;
mod errno;
mod event;
mod flight;
mod heap;
pub mod histogram;
mod holds;
pub mod inject;
mod lines;
mod occupancy;
pub mod pool;
mod random;
mod stats;
mod stops;
mod suspension;
mod time;
mod zio;

pub use bytes::{Buf, Move, Segment, Span};
pub use client::{CLIENTS_TOLD_APART, ClientId, glob_matches, glob_matches_by};
pub use command::{Action, Answer, Command, CommandError, CommandId, Input, Left, Release, Target};
pub use depths::{DepthSummary, DepthTimes};
pub use engine::{DiskConfig, Engine};
pub use errno::CallErrno;
pub use event::{Device, Event, Waits};
pub use holds::Holds;
pub use random::{Random, Ratio};
pub use stats::{DiskStats, InFlight, LatencyKind, OpStats, RuleCounts, RuleStats, RuleView, Wait};
pub use time::{Duration, Instant};
pub use zio::{CallNumber, DiskId, Errno, Op, OpSet, Outcome, PoolId, VolumeId, Zio, ZioId};
