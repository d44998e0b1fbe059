use std::collections::VecDeque;

use dashpot_engine::{ClientId, Duration, Instant};

use super::*;
use crate::frontend::{Session, nbd};
use crate::message::Handover;

const LARGEST: u32 = 32 << 20;
const START: Instant = Instant::from_nanos(1 << 40);

/// A client that announces the largest payload, and then sends this many bytes of it per second.
#[derive(Clone, Copy)]
struct Slow(f64);

impl Slow {
    /// How long the client occupies its part of the budget, if the shard looks at the payload as often as in
    /// production.
    fn keeps(self) -> Duration {
        let mut now = START;
        loop {
            now = now + EVICT_EVERY;
            let seconds = now.since(START).as_nanos() as f64 / 1e9;
            let received = (self.0 * seconds) as usize;
            let transit = Transit {
                length: LARGEST,
                received: received.min(LARGEST as usize),
                since: START,
            };
            if transit.is_late(now) || received >= LARGEST as usize {
                return now.since(START);
            }
        }
    }
}

/// How long a request waits behind the payloads of slow clients. Half of a shard's budget limits how many
/// payloads arrive at once.
fn wait_behind(slow: &[Slow]) -> Duration {
    let places = (PAYLOAD_MAX / u64::from(EXPORT_SHARE) / u64::from(LARGEST)) as usize;
    let mut free: VecDeque<Duration> = vec![Duration::ZERO; places].into();
    for client in slow {
        let begins = free.pop_front().unwrap();
        free.push_back(begins + client.keeps());
        free.make_contiguous().sort();
    }
    free[0]
}

#[test]
fn slow_payloads_keep_a_large_one_waiting_for_less_than_ten_seconds() {
    for (name, count, bytes_per_second) in [("silent", 40, 0.0), ("dripping", 6, 0.25)] {
        let wait = wait_behind(&vec![Slow(bytes_per_second); count]);
        assert!(wait < TRANSIT_MAX, "{count} {name}: {wait}");
    }
}

#[test]
fn a_payload_that_comes_steadily_has_ten_seconds() {
    let least = f64::from(LARGEST) / 10.0;
    assert!(Slow(least * 0.9).keeps() < TRANSIT_MAX);
    assert!(Slow(least).keeps() >= TRANSIT_MAX);
}

#[test]
fn no_payload_is_late_before_it_can_begin() {
    let transit = Transit {
        length: LARGEST,
        received: 0,
        since: START,
    };
    assert!(!transit.is_late(START + (TRANSIT_LEAST - Duration::from_nanos(1))));
    assert!(transit.is_late(START + TRANSIT_LEAST));
}

#[test]
fn small_requests_pass_to_the_byte_until_all_of_them_are_too_much() {
    let taken = |bytes| Taken { zios: 0, bytes };
    let full = taken(PAYLOAD_MAX);
    assert!(full.admits_beyond(256 << 10));
    assert!(!full.admits_beyond((256 << 10) + 1));
    let most = taken(PAYLOAD_MAX + BEYOND_MAX);
    assert!(!most.admits_beyond(256 << 10));
    assert!(most.admits_beyond(TINY));
}

/// A connection to an export, with nothing in flight.
fn connection(export: ExportId) -> Connection {
    let (near, _far) = std::os::unix::net::UnixStream::pair().unwrap();
    let session = nbd::Session::new(near.into(), nbd::handshake::Features::default());
    let handover = Handover {
        session: Session::Nbd(session),
        export,
        peer: String::new(),
        left_over: Vec::new(),
        permit: None,
        attachment: None,
    };
    Connection::new(handover, ClientId(0), Instant::ZERO)
}

#[test]
fn an_export_takes_half_of_a_shard_and_leaves_the_rest() {
    let (greedy, other) = (ExportId(0), ExportId(1));
    let mut budget = Budget::new(2);
    let half = PAYLOAD_MAX / u64::from(EXPORT_SHARE);
    budget.charge(greedy, 1, half);
    assert!(!budget.admits(&connection(greedy), SMALL + 1));
    assert!(budget.admits(&connection(greedy), SMALL));
    assert!(budget.admits(&connection(other), half));
    budget.charge(other, 1, half);
    assert!(!budget.admits(&connection(other), SMALL + 1));
    budget.give_back(greedy, 1, half);
    assert!(budget.admits(&connection(greedy), half));
    assert_eq!(budget.held(0).payload, half);
}

#[test]
fn stalls_are_those_of_their_export_and_end_when_something_is_given_back() {
    let (full, other) = (ExportId(0), ExportId(1));
    let mut budget = Budget::new(2);
    budget.charge(full, 1, PAYLOAD_MAX);
    let mut stalled = connection(full);
    budget.stall(7, &mut stalled, SMALL + 1, START);
    assert!(!stalled.wants_input());
    assert_eq!((budget.stalled(full), budget.stalls(full)), (1, 1));
    assert_eq!((budget.stalled(other), budget.stalls(other)), (0, 0));
    assert_eq!(budget.evicts_at(), Some(START + EVICT_EVERY));
    assert!(budget.take_stalled().is_empty(), "nothing was given back");
    budget.give_back(full, 1, PAYLOAD_MAX);
    let waiting = budget.take_stalled();
    assert_eq!(waiting.len(), 1);
    assert!(budget.admits_stalled(waiting[0], &stalled));
    budget.keep_stalled(waiting[0]);
    budget.forget(7, &stalled);
    assert_eq!((budget.stalled(full), budget.stalls(full)), (0, 1));
}
