//! A load generator that is not the bottleneck. It sends many requests per system call, serves all
//! connections with one thread, and measures latencies to four digits.
//!
//! In a closed loop, the load keeps a fixed number of requests in flight: a new request starts when an
//! earlier one is answered. In an open loop, requests start at a fixed rate, evenly spaced or in bursts,
//! without waiting for earlier replies. Each latency is measured from the intended start of its request, so
//! that a slow disk does not look faster by delaying later requests (coordinated omission).

mod arrivals;
mod config;
mod link;
mod report;

use dashpot_engine::{Duration, Instant, Op, Random};
use dashpot_export::frontend::nbd::client::connect;
use dashpot_export::now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::link::Link;

pub use self::arrivals::Pace;
pub use self::config::LoadConfig;
pub use self::report::{LoadError, LoadReport, OpReport};

/// Runs a load until its time is up, a connection breaks, or `stop` returns true. The load passes the report
/// so far to `stop` a few times a second.
///
/// # Errors
/// Fails if the load cannot begin. If an error ends a running load, the report contains the error.
pub fn run(
    config: &LoadConfig,
    stop: impl FnMut(&LoadReport) -> bool,
) -> Result<LoadReport, LoadError> {
    let mut load = Load::connect(config)?;
    load.report.broken = go_on(&mut load, stop).err();
    // If requests hang, the load may have started requests after the last reply.
    let until = load.report.heard.max(load.asked_until);
    load.report.elapsed = until.since(load.start);
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
        let now = now();
        if !stopped {
            load.asked_until = now.min(end);
        }
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
    /// The latest time at which the load could have started a request.
    asked_until: Instant,
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
        let start = now();
        Ok(Load {
            config,
            links: links.into_iter().map(|(link, _)| link).collect(),
            arrivals: arrivals::Arrivals::new(config.pace, start, config.seed),
            random: Random::new(config.seed),
            blocks,
            next_block: 0,
            start,
            asked_until: start,
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
        let block = if self.config.sequential {
            self.next_block
        } else {
            self.random.below(self.blocks)
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

    /// Waits until a socket is ready or a request should begin. Does not wait if the load polls.
    fn wait(&self, now: Instant, look: Instant) -> Result<(), LoadError> {
        if self.config.busy {
            return Ok(());
        }
        let next = if self.in_flight() < self.config.depth {
            self.arrivals.next_at().min(look)
        } else {
            look
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

/// The time between two calls of `stop`.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the load waits for replies after its time is up.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);
