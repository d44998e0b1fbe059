//! `load`: a load generator.

use clap::Args;
use dashpot_engine::{Duration, Ratio};
use dashpot_rules::{
    NbdUri, ParseError, parse_probability, parse_seed, parse_size, parse_span, parse_uri, thousands,
};

/// Load a disk over NBD, and measure its latency
#[derive(Args, Debug)]
#[command(after_help = "\
With --rate, each request starts when it is due, whether or not earlier ones are
answered, and its latency counts from that moment. So a slow disk cannot look
faster by making the load wait.

Example: 32 random reads in flight on four connections, for ten seconds
  dashpot load nbd://127.0.0.1/c1t1d0 --depth 32 --connections 4 --time 10s
Example: 100 writes a second, in bursts of one to four
  dashpot load nbd://127.0.0.1/c1t1d0 --write 100% --rate 100 --burst 1..4")]
pub struct LoadArgs {
    /// nbd://HOST[:PORT]/DISK or nbd+unix:///DISK?socket=PATH
    #[arg(value_parser = parse_uri)]
    pub uri: NbdUri,
    /// Requests in flight at most, on all connections together
    #[arg(long, value_name = "N", value_parser = parse_depth)]
    pub depth: Option<u32>,
    /// Connections to the disk
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_many)]
    pub connections: u32,
    /// Bytes of each read and write
    #[arg(long, value_name = "SIZE", default_value = "4K", value_parser = parse_length)]
    pub block: u32,
    /// Share of writes; the rest are reads
    #[arg(long, value_name = "PCT", value_parser = parse_probability)]
    pub write: Option<Ratio>,
    /// Share of flushes
    #[arg(long, value_name = "PCT", value_parser = parse_probability)]
    pub flush: Option<Ratio>,
    /// Sequential offsets, instead of random ones
    #[arg(long)]
    pub sequential: bool,
    /// Requests per second [as fast as they are answered]
    #[arg(long, value_name = "N", value_parser = parse_many)]
    pub rate: Option<u32>,
    /// Requests in a burst, which start together; without --rate, the next burst starts when all are answered
    #[arg(long, value_name = "A..B", value_parser = parse_burst)]
    pub burst: Option<(u32, u32)>,
    /// How long to load the disk [until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub time: Option<Duration>,
    /// Poll instead of sleeping: this uses a whole CPU, and avoids wake-up delays
    #[arg(long)]
    pub busy: bool,
    /// Check that reads give zeroes, or the data that this load wrote
    #[arg(long)]
    pub verify: bool,
    /// Seed of offsets, mix and bursts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_seed)]
    pub seed: u64,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn parse_many(text: &str) -> Result<u32, ParseError> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' is not a number of requests: give 1 or more"
        ))
    })
}

/// The maximum number of requests in flight.
const DEPTH_MAX: u32 = 1_000_000;

/// Parses how many requests may be in flight. The limit protects this program, which keeps each request in
/// memory. A shard has a lower limit of its own.
fn parse_depth(text: &str) -> Result<u32, ParseError> {
    let depth = parse_many(text)?;
    let fits = (depth <= DEPTH_MAX).then_some(depth);
    fits.ok_or_else(|| {
        let most = thousands(DEPTH_MAX.into());
        ParseError::new(format!("'{text}' requests in flight: give at most {most}"))
    })
}

/// The length of a request. NBD allows at most 32M.
fn parse_length(text: &str) -> Result<u32, ParseError> {
    let length = parse_size(text)?;
    let fits = u32::try_from(length).ok();
    fits.filter(|length| (1..=32 << 20).contains(length))
        .ok_or_else(|| ParseError::new(format!("requests of '{text}': give 1 byte to 32M")))
}

/// Parses `A..B`: at least A requests, at most B.
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
