//! The thread that looks at the disks and changes them, so that the screen never waits for either.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::UnboundedSender;

use super::ask::{Ask, Told};
use super::daemon::Daemon;

/// Looks once per interval, for the first time after one, until nobody listens or asks any more.
pub(super) fn watch_daemon(
    daemon: Daemon,
    interval: Duration,
    told: UnboundedSender<Told>,
) -> anyhow::Result<Sender<Ask>> {
    let (asks, asked) = channel();
    let watcher = Watcher {
        daemon,
        interval,
        asked,
        told,
    };
    thread::Builder::new()
        .name("looks".to_owned())
        .spawn(move || watcher.run())?;
    Ok(asks)
}

struct Watcher {
    daemon: Daemon,
    interval: Duration,
    asked: Receiver<Ask>,
    told: UnboundedSender<Told>,
}

impl Watcher {
    fn run(mut self) {
        let mut due = Instant::now() + self.interval;
        while !self.told.is_closed() {
            match self.asked.recv_timeout(due - Instant::now()) {
                Ok(Ask::Every(interval)) => {
                    let last = due.checked_sub(self.interval).unwrap_or(due);
                    (self.interval, due) = (interval, last + interval);
                }
                Ok(ask) => self.carry_out(ask),
                Err(RecvTimeoutError::Timeout) => due = self.look(due),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Tells of a look, and says when the next one is due. What took too long is left out.
    fn look(&mut self, due: Instant) -> Instant {
        let now = match self.daemon.look() {
            Ok(look) => Told::Look(Box::new(look)),
            Err(error) => Told::Down(format!("{error:#}")),
        };
        self.tell(now);
        (due + self.interval).max(Instant::now())
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
