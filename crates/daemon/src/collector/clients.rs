//! The clients of a disk: those that events may name at present, and those with separate counts.
//!
//! A disk distinguishes 64 clients at a time. It reuses the ids of clients that have gone, but their counts
//! remain. The collector therefore counts by name, and counts at most [`CLIENTS_TOLD_APART`] clients
//! separately. When one more client connects, the collector counts the client that has been idle for longest
//! as one of [`OTHERS`] from then on.

use std::sync::Arc;

use dashpot_engine::{CLIENTS_TOLD_APART, ClientId};

/// The index of a client with a separate count; [`OTHERS`] for all others.
pub(super) type ClientIndex = u8;

/// The place of all clients that are not counted separately.
pub(super) const OTHERS: ClientIndex = CLIENTS_TOLD_APART;

/// The client that an id in events stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) place: ClientIndex,
    /// A number that, unlike an id or a place, is never used again; or [`NOBODY`].
    pub(super) number: u32,
}

/// The number that stands for clients without a separate name.
pub(super) const NOBODY: u32 = 0;

/// The clients of one disk.
#[derive(Debug)]
pub(super) struct Clients {
    /// The connected clients, by id.
    present: [Client; OTHERS as usize + 1],
    /// The clients with separate counts, by place.
    counted: Vec<Counted>,
}

#[derive(Debug)]
struct Counted {
    name: Arc<str>,
    /// The last second in which a client called `name` joined or was active, and the number of that client.
    active: (u64, u32),
}

impl Clients {
    pub(super) fn new() -> Clients {
        let nobody = Client {
            place: OTHERS,
            number: NOBODY,
        };
        Clients {
            present: [nobody; OTHERS as usize + 1],
            counted: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn of(&self, id: ClientId) -> Client {
        self.present[usize::from(id.0.min(OTHERS))]
    }

    /// The place at which the next client with this name is counted, and whether another client must give up
    /// that place and count as one of [`OTHERS`] from now on.
    pub(super) fn place_for(&self, name: &str) -> (ClientIndex, bool) {
        if let Some(at) = self.counted.iter().position(|client| &*client.name == name) {
            return (at as ClientIndex, false);
        }
        if self.counted.len() < usize::from(OTHERS) {
            return (self.counted.len() as ClientIndex, false);
        }
        let quiet = self.counted.iter().enumerate();
        let quiet = quiet.min_by_key(|(_, client)| client.active);
        (quiet.map_or(OTHERS, |(at, _)| at as ClientIndex), true)
    }

    /// Makes `id` stand for a client with this name, counted at `place`.
    pub(super) fn join(
        &mut self,
        id: ClientId,
        name: Arc<str>,
        place: ClientIndex,
        number: u32,
        second: u64,
    ) {
        let Some(present) = self.present.get_mut(usize::from(id.0)) else {
            return;
        };
        *present = Client { place, number };
        let active = (second, number);
        let client = Counted { name, active };
        match self.counted.get_mut(usize::from(place)) {
            Some(counted) if counted.name == client.name => counted.active = active,
            Some(counted) => {
                *counted = client;
                self.count_with_others(place, number);
            }
            None => self.counted.push(client),
        }
    }

    /// Counts the present clients at `place` as [`OTHERS`] from now on, except the client with this `number`.
    fn count_with_others(&mut self, place: ClientIndex, number: u32) {
        for present in &mut self.present {
            if present.place == place && present.number != number {
                present.place = OTHERS;
            }
        }
    }

    /// Notes that a client at a place is active.
    pub(super) fn touch(&mut self, place: ClientIndex, second: u64) {
        if let Some(counted) = self.counted.get_mut(usize::from(place)) {
            counted.active.0 = counted.active.0.max(second);
        }
    }

    /// The name of the client at a place.
    pub(super) fn name(&self, place: ClientIndex) -> Arc<str> {
        let counted = self.counted.get(usize::from(place));
        counted.map_or_else(|| "other".into(), |client| Arc::clone(&client.name))
    }

    /// The names of the clients that are counted separately.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.counted.iter().map(|client| &*client.name)
    }

    /// The numbers of the clients that events may name from now on.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.present.iter().map(|client| client.number)
    }
}
