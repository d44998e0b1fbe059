//! From words to values: every value that a command line, a lab file or the API can hold has one
//! parser here, and so one grammar everywhere.
//!
//! A parser takes the whole word and gives the value, or a [`ParseError`] that names what was
//! wrong and what to write instead. Nothing is rounded: what cannot be held exactly is refused.

mod address;
mod allowance;
mod decimal;
mod disk;
mod distribution;
mod duration;
mod errno;
mod name;
mod ops;
mod probability;
mod rule;
mod seed;
mod service;
mod size;
mod speed;
mod uri;
mod words;

use std::fmt;

pub(crate) use address::{ApiAddress, Listen, parse_api, parse_listen};
pub(crate) use allowance::{Allowance, parse_allowance};
pub(crate) use decimal::Decimal;
pub(crate) use disk::{
    DEFAULT_BLOCK, DEFAULT_SIZE, block_size, check_blocks, disk_size, needs_size, parse_disk,
    parse_store,
};
pub(crate) use duration::{
    parse_duration, parse_interval, parse_latency, parse_report_count, parse_span, parse_wait,
};
pub(crate) use name::{nearest, parse_name};
pub(crate) use ops::{format_ops, parse_ops};
pub(crate) use probability::{NEVER, parse_probability, parse_share};
pub(crate) use rule::{
    DiskInjection, Injection, RuleArgs, TypedRule, parse_disk_injection, parse_injection,
};
pub(crate) use seed::parse_seed;
pub(crate) use service::parse_service;
pub(crate) use size::{format_size, parse_bandwidth, parse_range, parse_size};
pub(crate) use speed::{Speed, parse_speed};
pub(crate) use uri::{NbdUri, parse_uri};

/// Why words are not a value: one sentence that quotes the words and names the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParseError(String);

impl ParseError {
    pub(crate) fn new(message: impl Into<String>) -> ParseError {
        ParseError(message.into())
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}
