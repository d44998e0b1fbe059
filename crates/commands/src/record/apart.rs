//! The part of a recording that has a thread of its own to watch the disks, apart from the thread that
//! records. So a daemon that hangs does not keep the recorder from reading the kernel's events, which the
//! kernel overwrites when they are not read in time.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use dashpot_observe::{FinishedIo, Layer, Schedule, Seen};
use dashpot_sources::{Stop, Target};

use super::changes::{Change, Changes};
use super::watching::{in_flight, next, put_on, sources};

/// A thread that watches a target.
pub(super) struct Apart {
    told: Receiver<Told>,
    /// Asks for the I/Os in flight.
    ask: Sender<()>,
    stop: Stop,
    /// The part's times are on the clock that both parts share, and may be off by up to this many
    /// nanoseconds.
    pub(super) off_ns: u64,
    /// When the thread last sent a message.
    heard: Instant,
    seen: Vec<Seen>,
    changes: Vec<Change>,
    in_flight: Option<Vec<FinishedIo>>,
    /// Whether the thread has not yet answered the last request for the I/Os in flight.
    owes: bool,
    /// Whether the watch goes on, or why it cannot.
    goes_on: anyhow::Result<bool>,
}

/// A message of the thread.
enum Told {
    /// The watch has begun. Its times may be off by at most this many nanoseconds.
    Begun(u64),
    Seen(Box<Seen>),
    Changes(Vec<Change>),
    /// The I/Os in flight; `None` if the daemon did not answer.
    InFlight(Option<Vec<FinishedIo>>),
    /// The watch is over, or cannot begin or go on.
    Ended(anyhow::Result<()>),
}

/// The watch of the thread.
struct Watch {
    target: Target,
    layers: Vec<Layer>,
    schedule: Schedule,
    ahead_ns: u64,
    told: Sender<Told>,
    asked: Receiver<()>,
}

impl Apart {
    /// Starts the thread. Returns when the watch has begun.
    pub(super) fn begin(
        target: Target,
        layers: &[Layer],
        schedule: &Schedule,
        ahead_ns: u64,
    ) -> anyhow::Result<Apart> {
        let stop = Stop::new().context("signals cannot be caught")?;
        let ((way, told), (ask, asked)) = (channel(), channel());
        let watch = Watch {
            target,
            layers: layers.to_vec(),
            schedule: *schedule,
            ahead_ns,
            told: way,
            asked,
        };
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || watch.run())
            .context("a thread cannot be started")?;
        let off_ns = match told.recv() {
            Ok(Told::Begun(off_ns)) => off_ns,
            Ok(Told::Ended(Err(error))) => return Err(error),
            _ => bail!("the thread that watches has failed"),
        };
        Ok(Apart {
            told,
            ask,
            stop,
            off_ns,
            heard: Instant::now(),
            seen: Vec::new(),
            changes: Vec::new(),
            in_flight: None,
            owes: false,
            goes_on: Ok(true),
        })
    }

    /// Passes to `take` what the thread has seen since the last call of `next`. Returns whether the watch
    /// goes on.
    pub(super) fn next(&mut self, take: &mut dyn FnMut(Seen)) -> anyhow::Result<bool> {
        self.hear(MOMENT);
        while self.hear(Duration::ZERO) {}
        let has_seen = !self.seen.is_empty();
        self.seen.drain(..).for_each(take);
        // The thread may wait for an answer of a daemon that hangs.
        if self.stop.is_set() && self.heard.elapsed() >= PATIENCE {
            self.fail(anyhow!("it does not answer"));
        }
        match &self.goes_on {
            Ok(goes_on) => Ok(*goes_on || has_seen),
            Err(_) => std::mem::replace(&mut self.goes_on, Ok(false)),
        }
    }

    /// The changes of rules and disks since the last call.
    pub(super) fn changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    /// The I/Os in flight now, or at the end of the watch; `None` if the thread does not send them soon.
    pub(super) fn in_flight(&mut self) -> Option<Vec<FinishedIo>> {
        let mut most = ANSWER;
        if matches!(self.goes_on, Ok(true)) {
            self.in_flight = None;
            // While a daemon hangs, the recorder may complete many files of a busy disk. Only the first of
            // these files waits for an answer.
            if std::mem::replace(&mut self.owes, true) {
                most = Duration::ZERO;
            } else {
                // If the thread has ended, it has already sent the I/Os in flight.
                let _ = self.ask.send(());
            }
        }
        let asked = Instant::now();
        let mut is_told = true;
        while self.in_flight.is_none() && self.owes && is_told && asked.elapsed() < most {
            is_told = self.hear(most.saturating_sub(asked.elapsed()));
        }
        self.in_flight.clone()
    }

    /// Waits at most this long for a message of the thread. Returns whether one came.
    fn hear(&mut self, most: Duration) -> bool {
        match self.told.recv_timeout(most) {
            Ok(told) => self.keep(told),
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => {
                // An ended thread has already said why it ended, unless it has panicked.
                if matches!(self.goes_on, Ok(true)) {
                    self.fail(anyhow!("the thread that watches has failed"));
                }
                return false;
            }
        }
        self.heard = Instant::now();
        true
    }

    fn keep(&mut self, told: Told) {
        match told {
            Told::Begun(off_ns) => self.off_ns = off_ns,
            Told::Seen(seen) => self.seen.push(*seen),
            Told::Changes(changes) => self.changes.extend(changes),
            Told::InFlight(ios) => (self.in_flight, self.owes) = (ios, false),
            Told::Ended(Ok(())) => self.goes_on = Ok(false),
            Told::Ended(Err(error)) => self.fail(error),
        }
    }

    fn fail(&mut self, error: anyhow::Error) {
        self.goes_on = Err(error);
        // The I/Os that were in flight may have ended since.
        self.in_flight = None;
    }
}

impl Watch {
    fn run(self) {
        let ended = self.watch();
        self.tell(Told::Ended(ended));
    }

    fn watch(&self) -> anyhow::Result<()> {
        let mut sources = sources(&self.target, &self.layers, &self.schedule)?;
        self.tell(Told::Begun(put_on(&mut sources, self.ahead_ns)));
        let mut changes = Changes::of(&self.target);
        while next(&mut sources, &mut |seen| {
            self.tell(Told::Seen(Box::new(seen)));
        })? {
            self.tell(Told::Changes(changes.news()));
            if self.asked.try_iter().count() > 0 {
                self.tell(Told::InFlight(in_flight(&mut sources)));
            }
        }
        self.tell(Told::InFlight(in_flight(&mut sources)));
        Ok(())
    }

    /// Sends a message to the recorder, which may have ended.
    fn tell(&self, told: Told) {
        let _ = self.told.send(told);
    }
}

/// How long a call of `next` waits for a message. It is shorter than the time between two readings of the
/// kernel's events.
const MOMENT: Duration = Duration::from_millis(10);
/// How long the recorder waits for the I/Os in flight. Events of the kernel wait in its buffers meanwhile.
const ANSWER: Duration = Duration::from_millis(200);
/// How long a thread may say nothing after the user has ended the recording.
const PATIENCE: Duration = Duration::from_secs(5);
