//! Sessions that stay after the end of their connection, because the kernel still has their device. They fail
//! all of the kernel's requests.

use super::connections::Poller;
use crate::frontend::Session;
use crate::frontend::boundary::{Arrival, Frontend};

/// The lingering sessions, by place.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    places: Vec<Option<Session>>,
}

impl Lingering {
    /// Drops the session of a connection that has ended. If the kernel still has the session's device, keeps
    /// the session instead.
    pub(super) fn let_go(&mut self, mut session: Session, poller: &Poller) {
        if !session.fail_all() {
            return;
        }
        let free = self.places.iter().position(Option::is_none);
        let at = free.unwrap_or(self.places.len());
        if poller.linger(at, &session).is_ok() {
            self.places
                .resize_with(self.places.len().max(at + 1), || None);
            self.places[at] = Some(session);
        }
    }

    /// Lets a session fail the requests that have arrived. Ends the session if the kernel has given up the
    /// session's device.
    pub(super) fn go_on(&mut self, at: usize) {
        let place = &mut self.places[at];
        place.take_if(|session| session.receive(&mut Vec::new()) == Arrival::End);
    }
}
