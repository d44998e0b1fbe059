//! A load generator that is not the bottleneck: many requests per system call, one thread for all
//! connections, latencies to four digits.
//!
//! Closed loop: as many requests in flight as the depth, the next one when one is answered. Open
//! loop: requests at a fixed rate, evenly spaced or in bursts, whether or not earlier ones are
//! answered; a latency counts from the moment at which the request was meant to start, so that a
//! slow disk cannot hide by being asked less (coordinated omission).

mod arrivals;
mod link;

use std::io;

use dashpot_engine::{Duration, Instant, Op, Random};
use hdrhistogram::Histogram;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use self::arrivals::Pace;
use self::link::Link;
use crate::clock;
use crate::frontend::nbd::client::{ConnectError, connect};
use dashpot_rules::Address;

/// What is asked of a server, and how.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// Where the server is.
    pub address: Address,
    /// The export's name.
    pub export: String,
    /// Connections, all to the same export.
    pub connections: u32,
    /// Requests in flight at most, on all connections together.
    pub depth: u32,
    /// Bytes of a read or a write.
    pub block: u32,
    /// Parts per million of the requests that are writes, and that are flushes.
    pub writes_ppm: u32,
    /// See `writes_ppm`.
    pub flushes_ppm: u32,
    /// Whether offsets follow one another, instead of being random.
    pub sequential: bool,
    /// When requests start.
    pub pace: Pace,
    /// How long they do, if not until it is stopped.
    pub lasts: Option<Duration>,
    /// Whether to poll instead of sleep: no wake-up is in a latency then, at the price of a CPU.
    pub busy: bool,
    /// Whether to check what is read: zeroes, or what this load writes.
    pub verify: bool,
    /// Seeds offsets, the mix and bursts.
    pub seed: u64,
}

/// Why a load ended early.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There was no connection.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The export has room for no block.
    #[error("the export has {size} bytes: less than one block of {block}")]
    TooSmall {
        /// The export's size.
        size: u64,
        /// The block.
        block: u32,
    },
    /// The server went away.
    #[error("the server closed the connection")]
    Closed,
    /// A connection broke.
    #[error("the connection broke")]
    Broken(#[source] io::Error),
    /// The server said something that is no reply to a request.
    #[error("the server sent something that is no reply; the connection cannot go on")]
    OutOfStep,
    /// No histogram has so many digits.
    #[error("latencies cannot be kept to {DIGITS} digits")]
    Digits,
}

/// What came of a load.
#[derive(Debug)]
pub struct LoadReport {
    /// From the first request to the last reply.
    pub elapsed: Duration,
    /// Reads, writes and flushes, as in [`Op`].
    pub ops: [OpReport; 3],
    /// Requests without a reply when it had ended and [`DRAIN_MAX`] had passed. They are in no
    /// latency.
    pub unanswered: u32,
    /// Why it ended early, if it did; the rest is what came before.
    pub broken: Option<LoadError>,
    /// When the last reply came.
    heard: Instant,
}

impl LoadError {
    /// What became of a connection, as the system calls it.
    fn of(error: io::Error) -> LoadError {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => LoadError::Closed,
            _ => LoadError::Broken(error),
        }
    }
}

/// What came of one operation.
#[derive(Clone, Debug)]
pub struct OpReport {
    /// Bytes of those that succeeded.
    pub bytes: u64,
    /// Answered with an error.
    pub errors: u64,
    /// Reads that gave something else than was written.
    pub wrong: u64,
    /// Latencies in nanoseconds, errors included.
    pub latency: Histogram<u64>,
    /// The least of them, exactly: whether a reply was early must not depend on digits.
    pub least: Option<Duration>,
}

impl OpReport {
    fn record(&mut self, latency: Duration) {
        // Grows as it needs to; nothing that a u64 holds is too large for it.
        let _ = self.latency.record(latency.as_nanos());
        self.least = Some(self.least.map_or(latency, |least| least.min(latency)));
    }
}

impl LoadReport {
    fn new() -> Result<LoadReport, LoadError> {
        let op = || -> Result<OpReport, LoadError> {
            let latency = Histogram::new(DIGITS).map_err(|_| LoadError::Digits)?;
            Ok(OpReport {
                bytes: 0,
                errors: 0,
                wrong: 0,
                latency,
                least: None,
            })
        };
        Ok(LoadReport {
            elapsed: Duration::ZERO,
            unanswered: 0,
            ops: [op()?, op()?, op()?],
            broken: None,
            heard: Instant::ZERO,
        })
    }

    /// What came of one operation; the others are never asked for.
    pub fn op(&self, op: Op) -> Option<&OpReport> {
        self.ops.get(op as usize)
    }
}

/// Runs a load until its time is over, a connection breaks, or `stop` says so. `stop` is asked a
/// few times a second, and sees the report so far.
///
/// # Errors
/// There was nothing to load. What ends a load that has begun is in its report.
pub fn run(
    config: &LoadConfig,
    stop: impl FnMut(&LoadReport) -> bool,
) -> Result<LoadReport, LoadError> {
    let mut load = Load::connect(config)?;
    load.report.broken = go_on(&mut load, stop).err();
    load.report.elapsed = load.report.heard.since(load.start);
    load.report.unanswered = load.in_flight();
    Ok(load.report)
}

fn go_on(load: &mut Load<'_>, mut stop: impl FnMut(&LoadReport) -> bool) -> Result<(), LoadError> {
    let end = load
        .config
        .lasts
        .map_or(Instant::NEVER, |lasts| load.start + lasts);
    let mut look = load.start + LOOK_EVERY;
    let (mut stopped, mut last) = (false, load.start);
    loop {
        let now = clock::now();
        stopped |= now >= end;
        if now >= look {
            load.report.elapsed = now.since(load.start);
            stopped |= stop(&load.report);
            look = now + LOOK_EVERY;
        }
        if !stopped {
            last = now + DRAIN_MAX;
            load.begin(now)?;
        } else if load.in_flight() == 0 || now >= last {
            return Ok(());
        }
        load.send()?;
        load.wait(now, look)?;
        load.receive()?;
    }
}

struct Load<'a> {
    config: &'a LoadConfig,
    links: Vec<Link>,
    arrivals: arrivals::Arrivals,
    random: Random,
    blocks: u64,
    next_block: u64,
    start: Instant,
    report: LoadReport,
}

impl<'a> Load<'a> {
    fn connect(config: &'a LoadConfig) -> Result<Load<'a>, LoadError> {
        let links = (0..config.connections.max(1)).map(|_| {
            let connection = connect(&config.address, &config.export)?;
            let blocks = connection.size / u64::from(config.block.max(1));
            match blocks {
                0 => Err(LoadError::TooSmall {
                    size: connection.size,
                    block: config.block,
                }),
                _ => Ok((Link::new(connection.socket, config)?, blocks)),
            }
        });
        let links = links.collect::<Result<Vec<_>, LoadError>>()?;
        let blocks = links.first().map_or(1, |(_, blocks)| *blocks);
        let start = clock::now();
        Ok(Load {
            config,
            links: links.into_iter().map(|(link, _)| link).collect(),
            arrivals: arrivals::Arrivals::new(config.pace, start, config.seed),
            random: Random::new(config.seed),
            blocks,
            next_block: 0,
            start,
            report: LoadReport::new()?,
        })
    }

    fn in_flight(&self) -> u32 {
        self.links.iter().map(Link::in_flight).sum()
    }

    /// Begins as many requests as the pace and the depth allow.
    fn begin(&mut self, now: Instant) -> Result<(), LoadError> {
        let mut in_flight = self.in_flight();
        while in_flight < self.config.depth {
            let Some(start) = self.arrivals.next(now, in_flight) else {
                return Ok(());
            };
            let op = self.draw_op();
            let offset = self.draw_offset();
            let idle = self.links.iter_mut().min_by_key(|link| link.in_flight());
            if let Some(link) = idle {
                link.begin(op, offset, start);
            }
            in_flight += 1;
        }
        Ok(())
    }

    fn draw_op(&mut self) -> Op {
        let (writes, flushes) = (self.config.writes_ppm, self.config.flushes_ppm);
        if writes == 0 && flushes == 0 {
            return Op::Read;
        }
        match self.random.below(1_000_000) as u32 {
            drawn if drawn < flushes => Op::Flush,
            drawn if drawn < flushes + writes => Op::Write,
            _ => Op::Read,
        }
    }

    fn draw_offset(&mut self) -> u64 {
        let block = match self.config.sequential {
            true => self.next_block,
            false => self.random.below(self.blocks),
        };
        self.next_block = (block + 1) % self.blocks;
        block * u64::from(self.config.block)
    }

    fn send(&mut self) -> Result<(), LoadError> {
        for link in &mut self.links {
            link.send()?;
        }
        Ok(())
    }

    /// Waits until a socket is ready or something is to begin, unless it polls.
    fn wait(&self, now: Instant, look: Instant) -> Result<(), LoadError> {
        if self.config.busy {
            return Ok(());
        }
        let next = match self.in_flight() < self.config.depth {
            true => self.arrivals.next_at().min(look),
            false => look,
        };
        let wait = next.since(now).as_nanos();
        let timeout = Timespec {
            tv_sec: (wait / 1_000_000_000) as i64,
            tv_nsec: (wait % 1_000_000_000) as i64,
        };
        let mut polled: Vec<PollFd<'_>> = self.links.iter().map(poll_fd).collect();
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(LoadError::Broken(error.into())),
        }
    }

    fn receive(&mut self) -> Result<(), LoadError> {
        for link in &mut self.links {
            link.receive(&mut self.report)?;
        }
        Ok(())
    }
}

fn poll_fd(link: &Link) -> PollFd<'_> {
    let mut flags = PollFlags::IN;
    flags.set(PollFlags::OUT, link.has_unsent());
    PollFd::new(link, flags)
}

/// Significant digits of latencies.
const DIGITS: u8 = 4;
/// How often `stop` is asked.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long replies are waited for when the time is over.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);
