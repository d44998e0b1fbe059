//! Sessions that stay after the end of their connection, because the kernel still has their device. They fail
//! all of the kernel's requests.

use crate::frontend::Session;

/// The lingering sessions, by place.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    places: Vec<Option<Session>>,
}

impl Lingering {
    pub(super) fn insert(&mut self, session: Session) -> usize {
        let free = self.places.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[at] = Some(session);
        at
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Session> {
        self.places.get_mut(at)?.as_mut()
    }

    pub(super) fn remove(&mut self, at: usize) -> Option<Session> {
        self.places.get_mut(at)?.take()
    }
}
