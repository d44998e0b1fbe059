//! Who the clients of a disk are: those that its events name now, and those that are counted apart.
//!
//! A disk tells 64 clients apart at a time and uses their ids again; counts go on when the client
//! has gone. So clients are counted by name, at most [`CLIENTS_TOLD_APART`] of them: for one more,
//! that which has been quiet for longest is from then on counted with the others.

use std::sync::Arc;

use dashpot_engine::{CLIENTS_TOLD_APART, ClientId};

/// A client's place among those that are counted apart; [`OTHERS`] for the rest.
pub(super) type Place = u8;

/// Where those are counted that are not told apart.
pub(super) const OTHERS: Place = CLIENTS_TOLD_APART;

/// What an event's client id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) place: Place,
    /// Unlike an id and a place, never used again, but for [`NOBODY`].
    pub(super) number: u32,
}

/// The number of clients without a name of their own.
pub(super) const NOBODY: u32 = 0;

/// The clients of one disk.
#[derive(Debug)]
pub(super) struct Clients {
    /// By id.
    present: [Client; OTHERS as usize + 1],
    /// By place.
    counted: Vec<Counted>,
}

#[derive(Debug)]
struct Counted {
    name: Arc<str>,
    /// The second in which it did something last, or came, and the number of who came last.
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

    /// Where the next client of this name is counted. If that is the place of another, which is
    /// counted with the others from now on, the answer is true.
    pub(super) fn place_for(&self, name: &str) -> (Place, bool) {
        if let Some(at) = self.counted.iter().position(|client| &*client.name == name) {
            return (at as Place, false);
        }
        if self.counted.len() < usize::from(OTHERS) {
            return (self.counted.len() as Place, false);
        }
        let quiet = self.counted.iter().enumerate();
        let quiet = quiet.min_by_key(|(_, client)| client.active);
        (quiet.map_or(OTHERS, |(at, _)| at as Place), true)
    }

    /// From now on `id` stands for a client of this name, counted at `place`.
    pub(super) fn join(
        &mut self,
        id: ClientId,
        name: Arc<str>,
        place: Place,
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

    /// Those that were counted at `place` have it no longer, but for the one of this number.
    fn count_with_others(&mut self, place: Place, number: u32) {
        for present in &mut self.present {
            if present.place == place && present.number != number {
                present.place = OTHERS;
            }
        }
    }

    /// Those of a place do something.
    pub(super) fn touch(&mut self, place: Place, second: u64) {
        if let Some(counted) = self.counted.get_mut(usize::from(place)) {
            counted.active.0 = counted.active.0.max(second);
        }
    }

    /// Who is counted at a place.
    pub(super) fn name(&self, place: Place) -> Arc<str> {
        let counted = self.counted.get(usize::from(place));
        counted.map_or_else(|| "other".into(), |client| Arc::clone(&client.name))
    }

    /// The numbers of those that events may name from now on.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.present.iter().map(|client| client.number)
    }
}
