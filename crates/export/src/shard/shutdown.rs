//! The end of a shard: what is in flight has a grace period, and then fails.

use dashpot_engine::{Command, Duration, Errno, Instant};

use crate::shard::Shard;

/// How far a shutdown has come.
#[derive(Clone, Copy)]
pub(crate) enum Shutdown {
    /// What is held may end by itself until then.
    Grace(Instant),
    /// What was held has failed; its replies may be sent until then.
    Last(Instant),
}

impl Shutdown {
    /// When the next part of it begins.
    pub(crate) fn until(self) -> Instant {
        match self {
            Shutdown::Grace(until) | Shutdown::Last(until) => until,
        }
    }
}

impl Shard {
    /// Stops reading; every connection closes after its last reply. Said again, it can only end
    /// the grace period sooner.
    pub(crate) fn begin_shutdown(&mut self, grace: Duration) {
        if matches!(self.shutdown, Some(Shutdown::Last(_))) {
            return;
        }
        self.shutdown = Some(Shutdown::Grace(self.now + grace));
        for at in 0..self.conns.len() {
            if let Some(conn) = self.conns[at].as_mut() {
                conn.closing = true;
                self.watch(at);
                self.close_if_finished(at);
            }
        }
    }

    pub(crate) fn advance_shutdown(&mut self) {
        match self.shutdown {
            Some(Shutdown::Grace(until)) if self.now >= until => {
                self.shutdown = Some(Shutdown::Last(self.now + LAST_REPLIES));
                self.command(Command::FailHeld(Errno::Shutdown), Box::new(|_| ()));
            }
            Some(Shutdown::Last(until)) if self.now >= until => {
                for at in 0..self.conns.len() {
                    self.hang_up(at);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.shutdown.is_some() && self.leaving.is_empty() && self.conns.iter().all(Option::is_none)
    }

    /// What was written but never flushed is not lost by an orderly end.
    pub(crate) fn sync_stores(&mut self) {
        for disk in &mut self.disks {
            // A store without threads of its own syncs here.
            let _ = disk.store.flush();
            if let Some(file) = disk.store.blocking().filter(|_| !disk.export.read_only) {
                // A failure has marked the disk as faulted; there is nobody left to tell.
                let _ = file.sync();
            }
        }
    }
}

/// How long clients have to take their last replies.
const LAST_REPLIES: Duration = Duration::from_secs(1);
