//! The thread that looks at the disks and changes them, so that the screen never waits for either.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use dashpot_observe::Intervals;
use dashpot_probe::Device;
use dashpot_rules::Speed;
use tokio::sync::mpsc::UnboundedSender;

use super::ask::{Ask, Told};
use super::daemon::Daemon;
use super::kernel::Kernel;
use super::sim::{Live, Sim};
use crate::sources::now_ns;

/// A thread that looks once per interval, for the first time after one, until this is dropped.
pub(super) struct Link {
    asks: Option<Sender<Ask>>,
    /// What must have ended before the program does.
    thread: Option<JoinHandle<()>>,
}

impl Link {
    /// A daemon that does not answer is not waited for at the end.
    pub(super) fn to_daemon(
        daemon: Daemon,
        interval: Duration,
        told: UnboundedSender<Told>,
    ) -> anyhow::Result<Link> {
        let (asks, asked) = channel();
        let watcher = Watcher {
            daemon,
            interval,
            asked,
            told,
        };
        spawn(move || watcher.run())?;
        Ok(Link {
            asks: Some(asks),
            thread: None,
        })
    }

    /// The kernel must be left as it was found, so the end of the thread is waited for.
    pub(super) fn to_kernel(
        devices: Vec<Device>,
        interval: Duration,
        told: UnboundedSender<Told>,
    ) -> anyhow::Result<Link> {
        let (asks, asked) = channel();
        let (begun, begins) = channel();
        let kernel = Kernel {
            devices,
            interval,
            asked,
            told,
        };
        // Nobody has gone before it has been said.
        let thread = spawn(move || kernel.run(|outcome| drop(begun.send(outcome))))?;
        begins.recv()??;
        Ok(Link {
            asks: Some(asks),
            thread: Some(thread),
        })
    }

    /// A simulation leaves nothing behind, so its end is not waited for.
    pub(super) fn to_simulation(
        sim: Sim,
        speed: Speed,
        interval: Duration,
        told: UnboundedSender<Told>,
    ) -> anyhow::Result<Link> {
        let (asks, asked) = channel();
        let live = Live::new(sim, speed, interval, asked, told);
        spawn(move || live.run())?;
        Ok(Link {
            asks: Some(asks),
            thread: None,
        })
    }

    /// What cannot be asked any more is seen by the end of what is told.
    pub(super) fn ask(&self, ask: Ask) {
        if let Some(asks) = &self.asks {
            let _ = asks.send(ask);
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.asks = None;
        if let Some(thread) = self.thread.take() {
            // Its panic has been printed.
            let _ = thread.join();
        }
    }
}

fn spawn(run: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    thread::Builder::new().name("looks".to_owned()).spawn(run)
}

struct Watcher {
    daemon: Daemon,
    interval: Duration,
    asked: Receiver<Ask>,
    told: UnboundedSender<Told>,
}

impl Watcher {
    fn run(mut self) {
        let period_ns = |interval: Duration| interval.as_nanos() as u64;
        let mut intervals = Intervals::new(now_ns(), period_ns(self.interval), None);
        while !self.told.is_closed() {
            let due_ns = intervals.due_ns().unwrap_or(u64::MAX);
            let rest = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
            match self.asked.recv_timeout(rest) {
                Ok(Ask::Every(interval)) => {
                    self.interval = interval;
                    intervals.every(period_ns(interval));
                }
                Ok(ask) => self.carry_out(ask),
                Err(RecvTimeoutError::Timeout) => self.look(&mut intervals),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Tells of a look. The interval ends with the answer: those that have passed meanwhile are missed.
    fn look(&mut self, intervals: &mut Intervals) {
        let answer = self.daemon.look();
        let missed = intervals.end(now_ns()).map_or(0, |span| span.missed);
        self.tell(match answer {
            Ok(mut look) => {
                look.check_length(self.interval, missed);
                Told::Look(Box::new(look))
            }
            Err(error) => Told::Down(format!("{error:#}")),
        });
    }

    fn carry_out(&self, ask: Ask) {
        let answer = self.daemon.carry_out(&ask);
        self.tell(Told::Answer(ask, answer.map_err(|error| error.to_string())));
        // What fails here fails in the next look, too, which says so.
        if let Ok(look) = self.daemon.glance() {
            self.tell(Told::Look(Box::new(look)));
        }
    }

    /// That nobody listens is seen before the next turn.
    fn tell(&self, news: Told) {
        let _ = self.told.send(news);
    }
}
