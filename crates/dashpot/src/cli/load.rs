//! `load`: a small load for demonstrations.

use clap::Args;
use dashpot_engine::{Duration, Ratio};

use crate::spec::{ParseError, block_size, parse_duration, parse_probability};

/// Load a disk over NBD, for demonstrations
#[derive(Args, Debug)]
#[command(after_help = "\
Example: 100 writes a second, in bursts of one to four
  dashpot load nbd://127.0.0.1/c1t1d0 --write 100% --rate 100 --burst 1..4")]
pub(crate) struct LoadArgs {
    /// nbd://HOST[:PORT]/DISK or nbd+unix:///DISK?socket=PATH
    pub(crate) uri: String,
    /// Requests in flight at most
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_many)]
    pub(crate) depth: u32,
    /// Bytes of each request
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = block_size)]
    pub(crate) block: u32,
    /// Share of writes; the rest are reads
    #[arg(long, value_name = "PCT", value_parser = parse_probability)]
    pub(crate) write: Option<Ratio>,
    /// Requests per second [as fast as they are answered]
    #[arg(long, value_name = "N", value_parser = parse_many)]
    pub(crate) rate: Option<u32>,
    /// Requests that come at the same time, with --rate
    #[arg(long, value_name = "A..B", requires = "rate", value_parser = parse_burst)]
    pub(crate) burst: Option<(u32, u32)>,
    /// How long [until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) time: Option<Duration>,
}

fn parse_many(text: &str) -> Result<u32, ParseError> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
        ParseError::new(format!("'{text}' is no number of requests: give 1 or more"))
    })
}

/// `A..B`: at least A requests, at most B.
fn parse_burst(text: &str) -> Result<(u32, u32), ParseError> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let (least, most) = (parse_many(least)?, parse_many(most)?);
    if least > most {
        return Err(ParseError::new(format!(
            "'{text}': {least} is above {most}"
        )));
    }
    Ok((least, most))
}
