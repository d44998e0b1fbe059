//! Numbers as people read them on a terminal and in files: tables, charts, heat maps, sentences, and
//! proofs of rules. This crate does no I/O and reads no clock.
//!
//! A type that implements `Serialize` is in the output of `--json`, too. Its documentation describes the
//! shape of its JSON, with the conventions of the reports' JSON.

pub mod calls;
pub mod chart;
pub mod clock;
pub mod crash;
pub mod depth;
pub mod faults;
pub mod health;
pub mod heatmap;
pub mod html;
pub mod modes;
pub mod percentiles;
pub mod proof;
pub mod rule;
pub mod surface;
pub mod table;
