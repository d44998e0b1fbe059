//! The prober measures, end to end, the delay that a client on this host sees, independently of the shard's
//! own counters. The lateness that a shard counts ends when the shard offers a reply to the transport. No
//! counter of the server can include the time after that, or the time before the shard reads a request.
//!
//! Once a second, a separate thread reads a block of a separate disk over a socket pair. The read goes
//! through the same loop, engine, rule (`-D 1ms`) and replies as every other read. A reading is the time that
//! the read takes beyond the rule's delay. No client can reach this disk, no list shows it, and no other
//! figure counts its reads.
//!
//! The prober sleeps until its reply is there, as most clients do, so the reading includes the prober's own
//! wake-up. We also tried a prober that polls for its reply. But polling uses up the thread's time slice. If
//! other programs use the CPUs, the thread then has to wait for its next time slice, and the prober measured
//! 2 ms where clients saw 0.1 ms.
//!
//! In its passes, the shard tells the prober that clients are sending requests, and the prober's own thread
//! decides when to send a read. So the prober notices even a shard that is stuck, because a read that has no
//! answer yet counts with its age. While clients send no requests, the prober sends no reads, so that an idle
//! daemon does not wake up. The prober measures neither TCP nor the extra time of a large request or a full
//! queue.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

use dashpot_engine::inject::{GroupId, RuleId, RuleSpec};
use dashpot_engine::{Command, Device, DiskId, Duration, Instant};

use crate::clock;
use crate::export::{ExportId, ExportInfo, Power, Served};
use crate::frontend::Loopback;
use crate::message::{Handover, Message};
use crate::route::Route;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeReading {
    /// When the read was answered.
    pub at: Instant,
    /// How much longer the read took than the delay of the prober's rule.
    pub error: Duration,
}

/// The readings of a shard's prober.
#[derive(Debug, Default)]
pub(crate) struct Readings(Mutex<Found>);

#[derive(Debug, Default)]
struct Found {
    readings: VecDeque<ProbeReading>,
    /// When the pending read was sent. `None` if no read is pending.
    asked: Option<Instant>,
}

impl Readings {
    /// The readings of the minute before `now`, the oldest first. If a read has no answer yet and is late by
    /// at least [`OPEN_MIN`], its age counts as the last reading.
    pub(crate) fn last_minute(&self, now: Instant) -> Vec<ProbeReading> {
        let recent = |reading: &&ProbeReading| now.since(reading.at) < MINUTE;
        let found = self.lock();
        let open = found.asked.map(|asked| ProbeReading::of(asked, now));
        let open = open.filter(|open| open.error >= OPEN_MIN);
        let answered = found.readings.iter().filter(recent).copied();
        answered.chain(open).collect()
    }

    fn ask(&self, now: Instant) {
        self.lock().asked = Some(now);
    }

    /// Notes that the pending read has ended. The reading is `None` if the read failed.
    fn answer(&self, reading: Option<ProbeReading>) {
        let mut found = self.lock();
        found.asked = None;
        if found.readings.len() == READINGS_MAX {
            found.readings.pop_front();
        }
        found.readings.extend(reading);
    }

    /// Locks the readings. The readings are sound even after a panic, because no code that can panic holds
    /// the lock.
    fn lock(&self) -> MutexGuard<'_, Found> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProbeReading {
    /// The reading from a read that was sent at `asked` and answered at `at`.
    fn of(asked: Instant, at: Instant) -> ProbeReading {
        let took = at.since(asked);
        ProbeReading {
            at,
            error: took - DELAY,
        }
    }
}

/// The shard's handle to its prober, which ends when this handle is dropped.
#[derive(Debug)]
pub(crate) struct Prompt {
    prompt: SyncSender<()>,
    next: Instant,
}

impl Prompt {
    /// Tells the prober that clients are sending requests. The shard prompts the prober twice as often as the
    /// prober reads, so the prober always knows about recent requests when it decides to read.
    pub(crate) fn note_activity(&mut self, now: Instant) {
        if now >= self.next {
            self.next = now + PROMPT_EVERY;
            // If the prober has not taken the last prompt yet, another is not needed.
            let _ = self.prompt.try_send(());
        }
    }
}

/// The export that the prober reads.
pub(crate) fn served(disk: DiskId) -> Served {
    Served {
        info: ExportInfo {
            name: NAME.to_owned(),
            description: String::new(),
            size: u64::from(Loopback::READ),
            block: 1,
            preferred: 1,
            read_only: true,
            power: Power::default(),
        },
        device: Device::Disk(disk),
    }
}

/// Connects a prober to a shard that is about to run.
pub(crate) fn start(route: &Route<ExportId>, disk: DiskId) -> io::Result<(Prompt, Arc<Readings>)> {
    let shard = &route.mailbox;
    let (client, session) = Loopback::new()?;
    let delay = RuleSpec::delay(DELAY, None);
    let inject = Command::Inject {
        disk,
        group: GroupId(RULE.0),
        rules: vec![(RULE, delay)],
    };
    // These sends cannot fail, because a mailbox closes only when its shard ends, and this shard has not
    // started.
    let _ = shard.send(Message::Command(inject, Box::new(|_| ())));
    let _ = shard.send(Message::Connect(Handover {
        session,
        export: route.id,
        peer: NAME.to_owned(),
        left_over: Vec::new(),
        permit: None,
        attachment: None,
    }));
    let (prompt, prompts) = sync_channel(1);
    let readings = Arc::new(Readings::default());
    let prober = Prober {
        client,
        readings: Arc::clone(&readings),
    };
    // The thread ends when its shard ends.
    Builder::new()
        .name("dashpot-probe".to_owned())
        .spawn(move || prober.run(&prompts))?;
    let next = Instant::ZERO;
    Ok((Prompt { prompt, next }, readings))
}

struct Prober {
    client: Loopback,
    readings: Arc<Readings>,
}

impl Prober {
    /// Reads after a prompt, at most once a second, until the shard is gone.
    fn run(&self, prompts: &Receiver<()>) {
        while prompts.recv().is_ok() {
            let asked = clock::now();
            match self.read(asked) {
                Ok(reading) => self.readings.answer(reading),
                Err(_) => return,
            }
            let rest = (asked + EVERY).since(clock::now());
            std::thread::sleep(std::time::Duration::from_nanos(rest.as_nanos()));
        }
    }

    /// Takes one reading. `None` if the shard refuses the read, as it does when the daemon ends.
    fn read(&self, asked: Instant) -> io::Result<Option<ProbeReading>> {
        self.readings.ask(asked);
        let is_read = self.client.read()?;
        Ok(is_read.then(|| ProbeReading::of(asked, clock::now())))
    }
}

/// The name of the prober's disk and of its client. No export of clients has this name.
const NAME: &str = "probe";
/// The rule of the prober's disk. No rule that is armed later gets this id.
const RULE: RuleId = RuleId(0);
/// The delay of the prober's rule.
const DELAY: Duration = Duration::from_millis(1);
/// The least time between two reads of the prober.
const EVERY: Duration = Duration::from_secs(1);
/// The least time between two prompts from the shard.
const PROMPT_EVERY: Duration = Duration::from_millis(500);
/// A read without an answer counts as a reading once its age exceeds the rule's delay by this much.
const OPEN_MIN: Duration = Duration::from_millis(1);
/// How long readings are kept.
const MINUTE: Duration = Duration::from_secs(60);
/// The largest number of kept readings.
const READINGS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::{DELAY, EVERY, MINUTE, PROMPT_EVERY, ProbeReading, Prompt, READINGS_MAX, Readings};
    use dashpot_engine::{Duration, Instant};
    use std::sync::mpsc::sync_channel;

    #[test]
    fn the_bell_is_heard_before_the_probe_is_to_ask_again() {
        let (prompt, prompts) = sync_channel(1);
        let next = Instant::ZERO;
        let mut prompt = Prompt { prompt, next };
        let mut heard = |at| {
            prompt.note_activity(at);
            prompts.try_recv().is_ok()
        };
        let start = Instant::ZERO + MINUTE;
        assert!(heard(start));
        assert!(!heard(start + DELAY));
        assert!(heard(start + PROMPT_EVERY));
        assert!(!heard(start + PROMPT_EVERY + DELAY));
    }

    #[test]
    fn a_shard_does_not_wait_for_a_probe_that_goes_on() {
        let (prompt, prompts) = sync_channel(1);
        let next = Instant::ZERO;
        let mut prompt = Prompt { prompt, next };
        for second in 0..100 {
            prompt.note_activity(Instant::from_nanos(second * EVERY.as_nanos()));
        }
        assert_eq!(prompts.try_iter().count(), 1);
    }

    #[test]
    fn readings_are_those_of_the_last_minute() {
        let readings = Readings::default();
        for second in 0..100 {
            readings.answer(Some(ProbeReading {
                at: Instant::from_nanos(second * EVERY.as_nanos()),
                error: DELAY,
            }));
        }
        let at = |second: u64| readings.last_minute(Instant::from_nanos(second * EVERY.as_nanos()));
        assert_eq!(at(99).len(), READINGS_MAX);
        assert_eq!(at(120).len(), 39);
        assert_eq!(at(1_000), []);
    }

    #[test]
    fn a_question_that_stays_open_counts_with_its_age() {
        let readings = Readings::default();
        let asked = Instant::ZERO + MINUTE;
        readings.ask(asked);
        assert_eq!(readings.last_minute(asked + DELAY), []);
        let five = Duration::from_secs(5);
        let open = ProbeReading {
            at: asked + five,
            error: five - DELAY,
        };
        assert_eq!(readings.last_minute(asked + five), [open]);
        readings.answer(None);
        assert_eq!(readings.last_minute(asked + five), []);
    }
}
