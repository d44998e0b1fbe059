//! The handshakes in progress. When all places are taken and another client waits, this module chooses which
//! handshake to displace.
//!
//! A handshake frees its place when it is over, and after [`HANDSHAKE_MAX`] at the latest. If all places are
//! taken and another client waits, the peer with the most places loses its oldest handshake. So a flood of
//! half-open handshakes from one process or address displaces only handshakes of that peer, and other clients
//! keep their places. No handshake is displaced within [`LEAST`] of its start, so even during a flood from
//! many peers each client has enough time to finish.

use std::collections::{BTreeMap, HashMap};

use dashpot_engine::{Duration, Instant};

/// The handshakes in progress, keyed by number. Each client gets a larger number than the one before, so the
/// map is in the order in which the clients connected.
#[derive(Debug)]
pub(super) struct Pending<T> {
    pending: BTreeMap<u64, Waiting<T>>,
    next: u64,
}

#[derive(Debug)]
pub(super) struct Waiting<T> {
    came: Instant,
    pub(super) peer: String,
    pub(super) client: T,
}

impl<T> Default for Pending<T> {
    fn default() -> Pending<T> {
        Pending {
            pending: BTreeMap::new(),
            next: 0,
        }
    }
}

impl<T> Pending<T> {
    pub(super) fn is_full(&self) -> bool {
        self.pending.len() >= PLACES
    }

    /// The number that the next client gets.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Puts a client that has just connected into a place. The client gets the [next](Pending::next)
    /// number.
    pub(super) fn enter(&mut self, now: Instant, peer: String, client: T) {
        let place = Waiting {
            came: now,
            peer,
            client,
        };
        self.pending.insert(self.next, place);
        self.next += 1;
    }

    /// Takes a client out of its place, which becomes free. The caller may [put the client
    /// back](Pending::put_back).
    pub(super) fn take(&mut self, id: u64) -> Option<Waiting<T>> {
        self.pending.remove(&id)
    }

    pub(super) fn put_back(&mut self, id: u64, place: Waiting<T>) {
        self.pending.insert(id, place);
    }

    /// Drops the clients whose handshakes have timed out.
    pub(super) fn end_late(&mut self, now: Instant) {
        while let Some(first) = self.pending.first_entry() {
            if first.get().came + HANDSHAKE_MAX > now {
                return;
            }
            first.remove();
        }
    }

    /// The moment at which the oldest handshake times out.
    pub(super) fn late_at(&self) -> Option<Instant> {
        let (_, oldest) = self.pending.first_key_value()?;
        Some(oldest.came + HANDSHAKE_MAX)
    }

    /// Whether another client can be let in, because a place is free or a handshake can be displaced.
    pub(super) fn has_room(&self, now: Instant) -> bool {
        !self.is_full() || self.displaceable(now).is_some()
    }

    /// The handshake to displace, if all places are taken and a handshake may be displaced now.
    pub(super) fn displaceable(&self, now: Instant) -> Option<u64> {
        let (id, since) = self.next_displaced()?;
        (since <= now).then_some(id)
    }

    /// When the next handshake may be displaced, if all places are taken.
    pub(super) fn displaceable_at(&self) -> Option<Instant> {
        self.next_displaced().map(|(_, since)| since)
    }

    /// The handshake to displace next, and the moment from which it may be displaced.
    fn next_displaced(&self) -> Option<(u64, Instant)> {
        if !self.is_full() {
            return None;
        }
        let mut peers: HashMap<&str, (usize, u64)> = HashMap::new();
        for (id, place) in &self.pending {
            let (count, _oldest) = peers.entry(&place.peer).or_insert((0, *id));
            *count += 1;
        }
        let greediest = |(count, oldest): &(usize, u64)| (*count, std::cmp::Reverse(*oldest));
        let (_, oldest) = peers.into_values().max_by_key(greediest)?;
        let place = self.pending.get(&oldest)?;
        Some((oldest, place.came + LEAST))
    }
}

/// The largest number of handshakes in progress at once.
const PLACES: usize = 256;
/// How long one handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// How long a new handshake is safe from displacement. By default, Linux keeps a backlog of at most 4,096
/// clients, which is 16 times [`PLACES`]. So even if every handshake has to be displaced, all clients of a
/// full backlog are let in within 16 times this duration.
const LEAST: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::{Duration, HANDSHAKE_MAX, Instant, LEAST, PLACES, Pending};
    use std::collections::VecDeque;

    const HONEST: &str = "honest";

    /// Admits the clients of a queue in the way that the acceptor does, until the client `HONEST` gets a
    /// place. Returns how long that took. All other clients stall in the middle of their handshakes.
    fn honest_enters(mut queue: VecDeque<String>) -> (Duration, Pending<()>) {
        let mut places = Pending::default();
        let mut now = Instant::ZERO + HANDSHAKE_MAX;
        let begun = now;
        loop {
            places.end_late(now);
            while places.has_room(now) {
                if let Some(id) = places.displaceable(now) {
                    places.take(id);
                }
                let peer = queue.pop_front().expect("a client waits");
                let is_honest = peer == HONEST;
                places.enter(now, peer, ());
                if is_honest {
                    return (now.since(begun), places);
                }
            }
            now = places.displaceable_at().expect("all places are taken");
        }
    }

    fn flood(count: usize, peer: impl Fn(usize) -> String) -> VecDeque<String> {
        (0..count).map(peer).chain([HONEST.to_owned()]).collect()
    }

    #[test]
    fn four_thousand_in_front_take_less_than_ten_seconds() {
        for count in [0, 255, 256, 600, 4_000, 4_096] {
            let one = honest_enters(flood(count, |_| "flood".to_owned())).0;
            let many = honest_enters(flood(count, |at| at.to_string())).0;
            assert!(one.max(many) < HANDSHAKE_MAX, "{count}: {one}, {many}");
        }
    }

    #[test]
    fn a_flood_from_one_peer_displaces_itself() {
        let (_, mut places) = honest_enters(flood(PLACES - 1, |_| "flood".to_owned()));
        let honest = places.next() - 1;
        let mut now = places.late_at().expect("a handshake");
        for _ in 0..10 * PLACES {
            let displaced = places.displaceable(now).expect("the flood's oldest");
            assert_ne!(displaced, honest);
            places.take(displaced);
            places.enter(now, "flood".to_owned(), ());
            now = now.max(places.displaceable_at().expect("full"));
        }
    }

    #[test]
    fn nobody_is_displaced_before_a_handshake_can_be_done() {
        let mut places = Pending::default();
        let came = Instant::ZERO + HANDSHAKE_MAX;
        for at in 0..PLACES {
            assert!(places.has_room(came));
            places.enter(came, at.to_string(), ());
        }
        assert!(!places.has_room(came));
        assert_eq!(
            places.displaceable(came + (LEAST - Duration::from_nanos(1))),
            None
        );
        assert_eq!(places.displaceable(came + LEAST), Some(0), "the oldest");
    }

    #[test]
    fn who_takes_too_long_is_sent_away() {
        let mut places = Pending::default();
        let came = Instant::ZERO + HANDSHAKE_MAX;
        places.enter(came, HONEST.to_owned(), ());
        assert_eq!(places.late_at(), Some(came + HANDSHAKE_MAX));
        places.end_late(came + (HANDSHAKE_MAX - Duration::from_nanos(1)));
        assert!(places.late_at().is_some());
        places.end_late(came + HANDSHAKE_MAX);
        assert_eq!(places.late_at(), None);
    }
}
