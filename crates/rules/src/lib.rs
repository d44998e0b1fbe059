//! Parses words into values. Each kind of value has one parser here, so it has the same grammar on command
//! lines, in lab files and in the API.
//!
//! A parser takes the whole word and returns the value, or a [`ParseError`] that names the fault
//! and the remedy. Nothing is rounded: a value that cannot be represented exactly is refused.

mod address;
mod allowance;
mod call_names;
mod calls;
mod decimal;
mod disk;
mod distribution;
pub mod dm;
mod duration;
mod errno;
mod name;
mod nice;
mod ops;
mod plain;
mod pool;
mod probability;
mod rule;
pub mod scenario;
mod seed;
mod service;
mod shards;
mod size;
mod speed;
mod tunable;
mod uri;
pub mod zinject;

use std::fmt;

pub use address::{Address, ApiAddress, Listen, parse_api, parse_listen};
pub use allowance::{Allowance, parse_allowance};
pub use call_names::{call_name, call_names, call_number};
pub use calls::{CallFiles, format_types, parse_types};
pub use decimal::Decimal;
pub use disk::{
    DEFAULT_BLOCK, DEFAULT_SIZE, DiskConfig, StoreConfig, block_size, check_blocks, check_offset,
    disk_offset, disk_size, needs_size, parse_disk, parse_store,
};
pub use duration::{
    parse_duration, parse_interval, parse_latency, parse_report_count, parse_span, parse_wait,
};
pub use name::{nearest, parse_name, remedy_for};
pub use nice::{cpus_of, nice_number, nice_time, short_time, thousands};
pub use ops::{format_ops, parse_ops};
pub use plain::{choose_characters, lines, shell_word, spelled, visible};
pub use pool::{PoolSpec, VolumeSpec, pool_capacity};
pub use probability::{NEVER, parse_probability, parse_share};
pub use rule::{
    ClientNames, DiskInjection, Injection, RULE_OPTIONS, RuleDraft, RuleOption, TypedRule,
    damage_name, parse_disk_injection, parse_injection,
};
pub use seed::parse_seed;
pub use service::parse_service;
pub use shards::parse_shards;
pub use size::{format_size, parse_bandwidth, parse_range, parse_size};
pub use speed::{Speed, parse_speed};
pub use tunable::{
    format_tunable, parse_new_value, parse_tunable, parse_tunable_name, parse_tunable_setting,
};
pub use uri::{NbdUri, parse_uri, segment};

/// Why words are not a value: a sentence that quotes the words and names the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl ParseError {
    /// An error with this message, which quotes the words and names the remedy.
    pub fn new(message: impl Into<String>) -> ParseError {
        ParseError(message.into())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}
