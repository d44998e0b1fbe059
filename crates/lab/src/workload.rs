//! `[workload.NAME]`: the clients of a simulation.

use std::path::Path;

use dashpot_engine::Duration;
use dashpot_rules::{
    NEVER, ParseError, format_size, parse_bandwidth, parse_duration, parse_name, parse_range,
    parse_share, parse_size, parse_span, parse_wait,
};
use dashpot_sim::scenario::{Calls, Load, Pattern, WorkloadSpec};

use crate::key::{Key, names};
use crate::section::Section;
use crate::targets::Targets;
use crate::trace;

pub(crate) const CALL_KEYS: [Key; 7] = [
    Key {
        name: "target",
        kind: "volume or disk",
        example: "\"tank/foo\"",
        default: "none: it must be given",
        meaning: "The volume, or the disk outside of all pools, that is read and written.",
    },
    Key {
        name: "block",
        kind: "size",
        example: "\"4K\"",
        default: "\"8K\"",
        meaning: "Bytes of one call; offsets are multiples of it.",
    },
    Key {
        name: "read",
        kind: "share",
        example: "\"30%\"",
        default: "\"0%\"",
        meaning: "The share of calls that read; the others write.",
    },
    Key {
        name: "pattern",
        kind: "`random` or `sequential`",
        example: "\"sequential\"",
        default: "\"random\"",
        meaning: "The order of offsets. All threads of a workload share one sequence.",
    },
    Key {
        name: "sync",
        kind: "true or false",
        example: "true",
        default: "false",
        meaning: "Whether a write is durable before it is acknowledged (FUA).",
    },
    Key {
        name: "flush_every",
        kind: "number, 1 or more",
        example: "10",
        default: "none: no flushes",
        meaning: "N: each thread, or the open loop, flushes after every N writes.",
    },
    Key {
        name: "region",
        kind: "range of bytes",
        example: "\"1M..2M\"",
        default: "the whole target",
        meaning: "The part of the target that the calls use.",
    },
];
pub(crate) const CLOSED_KEYS: [Key; 3] = [
    Key {
        name: "threads",
        kind: "number, 1 or more",
        example: "64",
        default: "1",
        meaning: "Threads that each wait for a call before they begin the next.",
    },
    Key {
        name: "inside",
        kind: "time",
        example: "\"780us\"",
        default: "\"0s\"",
        meaning: "Time inside a call before the I/O is submitted; it counts as latency.",
    },
    Key {
        name: "think",
        kind: "time",
        example: "\"1ms\"",
        default: "\"0s\"",
        meaning: "Time between two calls of a thread.",
    },
];
pub(crate) const OPEN_KEYS: [Key; 2] = [
    Key {
        name: "rate",
        kind: "number, 1 or more",
        example: "1000",
        default: "none: a closed loop",
        meaning: "Calls per second that begin on time, however many have not ended.",
    },
    Key {
        name: "burst",
        kind: "number, 1 or more",
        example: "10",
        default: "1",
        meaning: "How many calls begin at the same moment. Needs `rate`.",
    },
];
pub(crate) const COMMON_KEYS: [Key; 4] = [
    Key {
        name: "start",
        kind: "time",
        example: "\"5s\"",
        default: "\"0s\"",
        meaning: "When the workload begins.",
    },
    Key {
        name: "stop",
        kind: "time",
        example: "\"15s\"",
        default: "none: the end of the run",
        meaning: "From this time on, the workload begins no more calls. It must be later than `start`.",
    },
    Key {
        name: "link",
        kind: "rate of bytes",
        example: "\"1G\"",
        default: "none: it takes no time",
        meaning: "Bytes per second of a link between the client and the lab, which all bytes of the workload pass one after the other.",
    },
    Key {
        name: "trace",
        kind: "path",
        example: "\"trace.csv\"",
        default: "none",
        meaning: "A trace to replay (see Traces), relative to the lab file. It goes with `start`, `stop` and `link` only.",
    },
];

/// Reads a workload. Traces are in `directory`, which also contains the lab.
pub(crate) fn read_workload(
    section: &Section<'_>,
    name: &str,
    targets: &Targets<'_>,
    directory: &Path,
) -> Result<WorkloadSpec, ParseError> {
    let misplaced = |why: &str| section.error(section.start(), "", why);
    let name = parse_name(name).map_err(|error| misplaced(&error.to_string()))?;
    section.refuse_unknown(&names(&[
        &CALL_KEYS,
        &CLOSED_KEYS,
        &OPEN_KEYS,
        &COMMON_KEYS,
    ]))?;
    let starts = section.value("start", parse_wait)?;
    let starts = starts.unwrap_or(Duration::ZERO);
    let stops = section.value("stop", parse_span)?;
    if stops.is_some_and(|stops| stops <= starts) {
        return section.refuse("stop", &format!("it is not after the start, {starts}"));
    }
    Ok(WorkloadSpec {
        name,
        starts,
        stops,
        link: section.value("link", parse_bandwidth)?,
        disconnects: Vec::new(),
        slowest: 0,
        load: read_load(section, targets, directory)?,
    })
}

fn read_load(
    section: &Section<'_>,
    targets: &Targets<'_>,
    directory: &Path,
) -> Result<Load, ParseError> {
    let load_trace = |word: &str| trace::load(&directory.join(word), targets);
    if section.has("trace") {
        let others = names(&[&CALL_KEYS, &CLOSED_KEYS, &OPEN_KEYS]);
        refuse_beside(section, "trace", &others)?;
        let entries = section.value("trace", load_trace)?;
        return Ok(Load::Trace(entries.unwrap_or_default()));
    }
    let calls = read_calls(section, targets)?;
    if let Some(rate) = section.value("rate", parse_rate)? {
        refuse_beside(section, "rate", &names(&[&CLOSED_KEYS]))?;
        let burst = section.value("burst", parse_number)?.unwrap_or(1);
        return Ok(Load::Open { rate, burst, calls });
    }
    if section.has("burst") {
        return section.refuse("burst", "only an open loop has bursts: add rate = 1000");
    }
    Ok(Load::Closed {
        threads: section.value("threads", parse_threads)?.unwrap_or(1),
        inside: section.value("inside", parse_duration)?.unwrap_or_default(),
        think: section.value("think", parse_duration)?.unwrap_or_default(),
        calls,
    })
}

fn refuse_beside(section: &Section<'_>, key: &str, others: &[&str]) -> Result<(), ParseError> {
    match others.iter().find(|other| section.has(other)) {
        Some(other) => section.refuse(
            other,
            &format!("it does not go with '{key}'; leave one of them out"),
        ),
        None => Ok(()),
    }
}

fn read_calls(section: &Section<'_>, targets: &Targets<'_>) -> Result<Calls, ParseError> {
    let target = section.value("target", |word| targets.find(word))?;
    let (target, size) = target.ok_or_else(|| {
        let text = "no target; add target = \"POOL/VOLUME\" or a disk, or a trace";
        section.error(section.start(), "", text)
    })?;
    let region = section.value("region", |word| region_within(word, size))?;
    let room = region.map_or(size, |(_, length)| length);
    let block = section.value("block", |word| block_within(word, room))?;
    let reads = section.value("read", parse_share)?;
    Ok(Calls {
        target,
        region,
        block: block.unwrap_or(DEFAULT_BLOCK),
        reads: reads.unwrap_or(NEVER),
        pattern: section
            .value("pattern", parse_pattern)?
            .unwrap_or(Pattern::Random),
        sync: section.flag("sync")?.unwrap_or(false),
        flush_every: section.value("flush_every", parse_number)?,
    })
}

/// Parses a region into its first byte and its length.
fn region_within(text: &str, size: u64) -> Result<(u64, u64), ParseError> {
    let (start, end) = parse_range(text)?;
    if end > size {
        return Err(ParseError::new(format!(
            "'{text}' goes beyond the end of the target at {}: end it there or before",
            format_size(size)
        )));
    }
    Ok((start, end - start))
}

fn block_within(text: &str, room: u64) -> Result<u32, ParseError> {
    let block = parse_size(text)?;
    if block == 0 || block > BLOCK_MAX {
        return Err(ParseError::new(format!(
            "blocks of '{text}' are not possible: give 1 byte to 32M"
        )));
    }
    if block > room {
        return Err(ParseError::new(format!(
            "'{text}' is more than the region or the target has, {}: make one of them fit",
            format_size(room)
        )));
    }
    u32::try_from(block).map_err(|_| ParseError::new(format!("'{text}' is too large")))
}

fn parse_pattern(text: &str) -> Result<Pattern, ParseError> {
    match text {
        "random" => Ok(Pattern::Random),
        "sequential" => Ok(Pattern::Sequential),
        _ => Err(ParseError::new(format!(
            "'{text}' is not a pattern: those are random and sequential"
        ))),
    }
}

/// Parses a number of threads, calls or writes.
fn parse_number<N: TryFrom<u64>>(text: &str) -> Result<N, ParseError> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number
        .and_then(|number| N::try_from(number).ok())
        .ok_or_else(|| {
            ParseError::new(format!(
                "'{text}' is not possible: give a whole number of 1 or more"
            ))
        })
}

fn parse_threads(text: &str) -> Result<u32, ParseError> {
    at_most(parse_number(text)?, THREADS_MAX, text)
}

fn parse_rate(text: &str) -> Result<u64, ParseError> {
    at_most(parse_number(text)?, RATE_MAX, text)
}

fn at_most<N: PartialOrd + std::fmt::Display>(
    number: N,
    most: N,
    text: &str,
) -> Result<N, ParseError> {
    if number > most {
        Err(ParseError::new(format!(
            "'{text}' is too many: at most {most}"
        )))
    } else {
        Ok(number)
    }
}

/// The maximum number of threads. This many threads fit into the memory of a usual machine.
pub(crate) const THREADS_MAX: u32 = 1_000_000;
/// The maximum rate, in calls per second. The virtual clock has no unit finer than a nanosecond.
pub(crate) const RATE_MAX: u64 = 1_000_000_000;
const DEFAULT_BLOCK: u32 = 8 << 10;
/// The maximum length of an NBD request, in bytes.
pub(crate) const BLOCK_MAX: u64 = 32 << 20;
