//! Sessions that stay after the end of their connection, because the kernel still has their device. They
//! fail what the kernel asks.

use super::Shard;
use crate::frontend::Session;
use crate::frontend::boundary::{Arrival, Frontend};

/// The sessions, by their places.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    places: Vec<Option<Session>>,
}

impl Lingering {
    fn insert(&mut self, session: Session) -> usize {
        let free = self.places.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[at] = Some(session);
        at
    }

    fn get_mut(&mut self, at: usize) -> Option<&mut Session> {
        self.places.get_mut(at)?.as_mut()
    }

    fn remove(&mut self, at: usize) -> Option<Session> {
        self.places.get_mut(at)?.take()
    }
}

impl Shard {
    /// Takes the session of a connection that has ended, and keeps it as long as it must stay.
    pub(super) fn let_go(&mut self, mut session: Session) {
        if !session.fail_all() {
            return;
        }
        let at = self.lingering.insert(session);
        let session = self.lingering.get_mut(at);
        if session.is_none_or(|session| self.poller.linger(at, session).is_err()) {
            self.lingering.remove(at);
        }
    }

    /// Lets a session fail what has arrived. Ends it if the kernel has given its device up.
    pub(super) fn linger_on(&mut self, at: usize) {
        let Some(session) = self.lingering.get_mut(at) else {
            return;
        };
        if session.receive(&mut Vec::new()) == Arrival::End {
            self.lingering.remove(at);
        }
    }
}
