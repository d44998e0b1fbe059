//! Clients: their calls, and the results that they see.
//!
//! ```text
//! closed loop   turn ─ inside ─ link ─ lab ─ link ─ think ─ turn
//! open loop     turn ─ link ─ lab ─ link          (turns come on time)
//! ```

mod results;
mod source;

use dashpot_engine::{ClientId, Duration, Instant};

use crate::calls::Request;
use crate::error::WorkloadError;
use crate::pipe::Pipe;
use crate::scenario::{Calls, Load, Target, TraceEntry, WorkloadSpec};
pub use results::{OpResults, SlowCall, WorkloadResults};
use source::Source;

/// A client at work.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) client: ClientId,
    starts: Instant,
    stops: Instant,
    /// The link to the lab. It is independent of the link back to the client.
    pub(crate) to_lab: Option<Pipe>,
    pub(crate) to_client: Option<Pipe>,
    load: Loading,
    pub(crate) results: WorkloadResults,
}

#[derive(Debug)]
enum Loading {
    Closed {
        source: Source,
        inside: Duration,
        think: Duration,
        /// How many writes each thread has made since its last flush.
        unflushed: Vec<u64>,
    },
    Open {
        source: Source,
        rate: u64,
        burst: u32,
        /// How many calls have begun.
        begun: u64,
        unflushed: u64,
    },
    Trace {
        entries: Vec<TraceEntry>,
        next: usize,
    },
}

/// The action that a thread takes at its turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turn {
    /// The thread begins a call, which first stays with its client for this long.
    Call(Request, Duration),
    /// The thread waits for its next turn.
    Wait(Instant),
    /// The thread ends.
    End,
}

impl Workload {
    /// Makes a client. `size` returns the size of a target.
    pub(crate) fn new(
        spec: &WorkloadSpec,
        client: ClientId,
        seed: u64,
        size: impl Fn(Target) -> Option<u64>,
    ) -> Result<Workload, WorkloadError> {
        Ok(Workload {
            client,
            starts: Instant::ZERO + spec.starts,
            stops: Instant::ZERO + spec.stops.unwrap_or(Duration::MAX),
            to_lab: spec.link.map(Pipe::new),
            to_client: spec.link.map(Pipe::new),
            load: Loading::new(&spec.load, seed, size)?,
            results: WorkloadResults::new(spec.slowest),
        })
    }

    /// The number of threads. Each thread has its first turn when the workload starts.
    pub(crate) fn threads(&self) -> u32 {
        match &self.load {
            Loading::Closed { unflushed, .. } => unflushed.len() as u32,
            Loading::Open { .. } | Loading::Trace { .. } => 1,
        }
    }

    pub(crate) fn starts(&self) -> Instant {
        self.starts
    }

    /// Decides what a thread does now. The thread of an open loop or of a trace has its next turn as soon as
    /// it has begun a call.
    pub(crate) fn turn(&mut self, thread: u32, now: Instant) -> Turn {
        if now >= self.stops {
            return Turn::End;
        }
        match &mut self.load {
            Loading::Closed {
                source,
                inside,
                unflushed,
                ..
            } => Turn::Call(source.next(&mut unflushed[thread as usize]), *inside),
            Loading::Open {
                source,
                rate,
                burst,
                begun,
                unflushed,
            } => {
                let at = self.starts + nth(*begun / u64::from(*burst), *burst, *rate);
                if at > now {
                    return Turn::Wait(at);
                }
                *begun += 1;
                Turn::Call(source.next(unflushed), Duration::ZERO)
            }
            Loading::Trace { entries, next } => {
                let Some(entry) = entries.get(*next) else {
                    return Turn::End;
                };
                let at = self.starts + entry.at;
                if at > now {
                    return Turn::Wait(at);
                }
                *next += 1;
                Turn::Call(request(entry), Duration::ZERO)
            }
        }
    }

    /// How long a thread thinks after a call; `None` if its turns do not depend on the ends of calls.
    pub(crate) fn think(&self) -> Option<Duration> {
        match &self.load {
            Loading::Closed { think, .. } => Some(*think),
            Loading::Open { .. } | Loading::Trace { .. } => None,
        }
    }
}

impl Loading {
    fn new(
        load: &Load,
        seed: u64,
        size: impl Fn(Target) -> Option<u64>,
    ) -> Result<Loading, WorkloadError> {
        let source = |calls: &Calls| {
            let size = size(calls.target).ok_or(WorkloadError::Target)?;
            Source::new(calls, size, seed).ok_or(WorkloadError::Region)
        };
        match load {
            Load::Closed {
                threads,
                inside,
                think,
                calls,
            } => Ok(Loading::Closed {
                source: source(calls)?,
                inside: *inside,
                think: *think,
                unflushed: vec![0; *threads as usize],
            }),
            Load::Open { rate: 0, .. } | Load::Open { burst: 0, .. } => Err(WorkloadError::Rate),
            Load::Open { rate, burst, calls } => Ok(Loading::Open {
                source: source(calls)?,
                rate: *rate,
                burst: *burst,
                begun: 0,
                unflushed: 0,
            }),
            Load::Trace(entries) => {
                check_entries(entries, size)?;
                Ok(Loading::Trace {
                    entries: entries.clone(),
                    next: 0,
                })
            }
        }
    }
}

fn check_entries(
    entries: &[TraceEntry],
    size: impl Fn(Target) -> Option<u64>,
) -> Result<(), WorkloadError> {
    let fits = |entry: &TraceEntry| {
        let end = entry.offset.checked_add(u64::from(entry.length));
        matches!((end, size(entry.target)), (Some(end), Some(size)) if end <= size)
    };
    if let Some(entry) = entries.iter().position(|entry| !fits(entry)) {
        return Err(WorkloadError::Entry { entry });
    }
    let goes_back = |pair: &[TraceEntry]| pair[1].at < pair[0].at;
    match entries.windows(2).position(goes_back) {
        Some(before) => Err(WorkloadError::TimeGoesBack { entry: before + 1 }),
        None => Ok(()),
    }
}

/// When the burst with index `n` of an open loop begins.
fn nth(n: u64, burst: u32, rate: u64) -> Duration {
    let nanos = u128::from(n) * u128::from(burst) * 1_000_000_000 / u128::from(rate);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

fn request(entry: &TraceEntry) -> Request {
    Request {
        op: entry.op,
        fua: entry.fua,
        target: entry.target,
        offset: entry.offset,
        length: entry.length,
    }
}
