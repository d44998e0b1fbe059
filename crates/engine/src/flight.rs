//! A zio on its way through the engine, and the table that all disks of an engine share.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::deadlines::Deadlines;
use crate::inject::booking::BookingId;
use crate::inject::id::RuleId;
use crate::inject::spec::Mode;
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Outcome, Zio, ZioId};

/// The state of a zio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The zio's disk is suspended.
    Suspended,
    /// A rule holds the zio before the driver asks the store.
    HeldBefore,
    /// The store is at work.
    Store,
    /// The store is at work, but the zio was aborted.
    Abandoned,
    /// The store has finished, and the zio is held until its target time.
    Held,
    /// The transport sends the zio's reply.
    Reply,
    /// The zio has been replied to or dropped. The zio's place in the table is free.
    Ended,
}

/// The part of a disk's bandwidth that a zio needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) rate: u64,
    pub(crate) rule: RuleId,
    pub(crate) mode: Mode,
    /// The zio's booking for the bandwidth, once the zio has reached the bandwidth.
    pub(crate) place: Option<BookingId>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) zio: Zio,
    pub(crate) state: State,
    /// The order of issue. Zios with equal deadlines wake in this order.
    pub(crate) order: u64,
    /// How many results clients had been told when the zio arrived at its disk.
    pub(crate) told_before: u64,
    /// The number of zios that the disk had in flight once this zio was submitted, including this zio.
    pub(crate) depth: u32,
    /// When the zio was submitted to its disk.
    pub(crate) submitted: Instant,
    /// When the zio was issued, after any suspension. Reports count latencies from this moment.
    pub(crate) issued: Instant,
    /// When the disk applied its rules to the zio: when the zio was issued, or, for the flush of a FUA write,
    /// when the write ended.
    pub(crate) charged: Instant,
    pub(crate) bookings: Option<BookingId>,
    pub(crate) transfer: Option<Transfer>,
    /// The `floor` rule that holds the zio longest.
    pub(crate) decider: Option<RuleId>,
    /// The moment until which rules hold the zio before the driver asks the store.
    pub(crate) hold_before: Option<Instant>,
    /// Whether rules hold the zio only before the store's work.
    pub(crate) before_only: bool,
    /// The earliest moment at which the zio may complete.
    pub(crate) target: Instant,
    /// The lateness with which the hold that precedes the store's work ended.
    pub(crate) late_before: Duration,
    /// When the driver asked the store to work.
    pub(crate) started: Instant,
    /// How long the store worked.
    pub(crate) worked: Duration,
    /// When the store finished. During the flush of a FUA write, when the write ended.
    pub(crate) store_done: Instant,
    pub(crate) outcome: Outcome,
    /// Whether the zio fails without the store's work.
    pub(crate) skips_store: bool,
    /// Whether a rule damages the zio's data, and the driver has not said that it could not.
    pub(crate) is_damaged: bool,
    /// Whether the store has been asked to work with the damage, so that the damage is counted.
    pub(crate) damage_counted: bool,
    /// Whether the zio is a FUA write whose flush has begun.
    pub(crate) flushing: bool,
    /// Whether a command ended a rule's hold early.
    pub(crate) cut_short: bool,
}

impl Flight {
    #[inline]
    fn new(zio: Zio, now: Instant) -> Flight {
        Flight {
            zio,
            state: State::Suspended,
            order: 0,
            told_before: 0,
            depth: 0,
            submitted: now,
            issued: now,
            charged: Instant::ZERO,
            bookings: None,
            transfer: None,
            decider: None,
            hold_before: None,
            before_only: false,
            target: Instant::ZERO,
            late_before: Duration::ZERO,
            started: now,
            worked: Duration::ZERO,
            store_done: Instant::ZERO,
            outcome: Ok(()),
            skips_store: false,
            is_damaged: false,
            damage_counted: false,
            flushing: false,
            cut_short: false,
        }
    }

    /// When the zio should have completed: at its target, or when the store would have finished if
    /// the driver had asked it in time.
    #[inline]
    pub(crate) fn due(&self) -> Instant {
        if self.target > self.store_done {
            return self.target;
        }
        let in_time = self
            .store_done
            .as_nanos()
            .saturating_sub(self.late_before.as_nanos());
        Instant::from_nanos(in_time).max(self.issued)
    }

    /// Whether rules still made the zio wait at the moment at which it should have completed.
    #[inline]
    pub(crate) fn was_held(&self, due: Instant) -> bool {
        due.since(self.issued) > self.worked
    }

    /// The zio's booking for the disk's bandwidth, once the zio has reached the bandwidth.
    pub(crate) fn place(&self) -> Option<BookingId> {
        self.transfer?.place
    }

    /// The rule that sent the zio through the disk's bandwidth, once the zio has reached the
    /// bandwidth.
    pub(crate) fn passed(&self) -> Option<RuleId> {
        self.transfer
            .filter(|transfer| transfer.place.is_some())
            .map(|transfer| transfer.rule)
    }

    /// Whether the zio must still reach the disk's bandwidth.
    pub(crate) fn owes_transfer(&self) -> bool {
        self.transfer
            .is_some_and(|transfer| transfer.place.is_none())
    }

    pub(crate) fn wake(&self, at: Instant, deadlines: &mut Deadlines) {
        deadlines.set(self.zio.id, self.order, at);
    }

    /// Sets the deadline that follows from the zio's state and schedule. If the deadline has passed, the zio
    /// wakes in the same step if that step may still wake zios, and otherwise in the next one.
    pub(crate) fn wake_as_scheduled(&self, now: Instant, deadlines: &mut Deadlines) {
        match self.state {
            State::HeldBefore => self.wake(self.hold_before.unwrap_or(now), deadlines),
            State::Held => self.wake(self.target, deadlines),
            State::Store if self.owes_transfer() => self.wake(self.target, deadlines),
            _ => {}
        }
    }
}

/// The zios in flight, by id. All disks of an engine share the table. The zios of a disk are linked in the
/// order of arrival, so that the cost of listing them depends only on how many are in flight now. If a zio's
/// payload took very long to arrive, finding the zio's place in the list would be slow, so the zio is in a
/// set instead.
#[derive(Debug, Default)]
pub(crate) struct Flights {
    slots: Vec<Flight>,
    /// The neighbours of each zio in the list of its disk.
    links: Vec<Link>,
    /// The first and the last zio of each disk's list.
    ends: Vec<Link>,
    /// The zios of each disk that are not in the disk's list.
    late: Vec<BTreeSet<(Instant, u32)>>,
}

/// The zios ahead of a zio and behind it in a list. The ends of a list are one more link, which makes the
/// list a ring: the last zio is `ahead` of this link, and the first is `behind` it.
#[derive(Clone, Copy, Debug)]
struct Link {
    ahead: u32,
    behind: u32,
}

impl Flights {
    /// Adds a zio. The zio stays until it has ended and is removed.
    pub(crate) fn insert(&mut self, zio: Zio, now: Instant) -> &mut Flight {
        let index = zio.id.0 as usize;
        let flight = Flight::new(zio, now);
        while self.slots.len() <= index {
            self.slots.push(Flight {
                state: State::Ended,
                ..flight
            });
            self.links.push(NOWHERE);
        }
        self.link(&zio);
        let slot = &mut self.slots[index];
        debug_assert!(slot.state == State::Ended, "zio {index} is in use");
        *slot = flight;
        slot
    }

    #[inline]
    pub(crate) fn get(&self, id: ZioId) -> Option<&Flight> {
        let slot = self.slots.get(id.0 as usize);
        slot.filter(|flight| flight.state != State::Ended)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ZioId) -> Option<&mut Flight> {
        let slot = self.slots.get_mut(id.0 as usize);
        slot.filter(|flight| flight.state != State::Ended)
    }

    /// The zios of a disk, in the order of arrival.
    pub(crate) fn of_disk(&self, disk: DiskId) -> impl Iterator<Item = &Flight> {
        let first = self.ends.get(disk.0 as usize).map(|ends| ends.behind);
        let behind = |id: &u32| self.links.get(*id as usize).map(|link| link.behind);
        let mut listed = core::iter::successors(first, behind)
            .map_while(|id| self.slots.get(id as usize))
            .peekable();
        let late = self.late.get(disk.0 as usize).into_iter().flatten();
        let mut late = late
            .filter_map(|(_, id)| self.slots.get(*id as usize))
            .peekable();
        core::iter::from_fn(move || {
            let late_is_next = match (listed.peek(), late.peek()) {
                (Some(one), Some(other)) => other.zio.arrived < one.zio.arrived,
                (one, _) => one.is_none(),
            };
            if late_is_next {
                late.next()
            } else {
                listed.next()
            }
        })
    }

    /// Takes a zio out of the list or the set of its disk, if it has ended.
    #[inline]
    pub(crate) fn remove_ended(&mut self, id: ZioId) {
        let slot = self.slots.get(id.0 as usize);
        if let Some(ended) = slot.filter(|flight| flight.state == State::Ended) {
            self.unlink(ended.zio);
        }
    }

    #[inline]
    fn unlink(&mut self, zio: Zio) {
        let (index, disk) = (zio.id.0 as usize, zio.device.0 as usize);
        let Link { ahead, behind } = self.links[index];
        if ahead == LATE {
            self.remove_late(&zio);
            return;
        }
        self.links
            .get_mut(ahead as usize)
            .unwrap_or(&mut self.ends[disk])
            .behind = behind;
        self.links
            .get_mut(behind as usize)
            .unwrap_or(&mut self.ends[disk])
            .ahead = ahead;
        self.links[index] = NOWHERE;
    }

    #[cold]
    fn remove_late(&mut self, zio: &Zio) {
        self.late[zio.device.0 as usize].remove(&(zio.arrived, zio.id.0));
    }

    /// Puts a zio into its disk's list, which has the order in which headers arrived. If the payloads of
    /// later headers were complete earlier, their zios are already in the list, and the new zio goes ahead of
    /// them.
    #[inline]
    fn link(&mut self, zio: &Zio) {
        let (id, disk) = (zio.id.0, zio.device.0 as usize);
        if self.ends.len() <= disk {
            self.ends.resize(disk + 1, NOWHERE);
            self.late.resize_with(disk + 1, BTreeSet::new);
        }
        let (mut ahead, mut behind) = (self.ends[disk].ahead, NOBODY);
        let mut passed = 0;
        while let Some(other) = self.slots.get(ahead as usize)
            && other.zio.arrived > zio.arrived
        {
            (ahead, behind) = (self.links[ahead as usize].ahead, ahead);
            passed += 1;
            if passed == PASSED_MAX {
                self.late[disk].insert((zio.arrived, id));
                self.links[id as usize].ahead = LATE;
                return;
            }
        }
        self.links[id as usize] = Link { ahead, behind };
        self.links
            .get_mut(ahead as usize)
            .unwrap_or(&mut self.ends[disk])
            .behind = id;
        self.links
            .get_mut(behind as usize)
            .unwrap_or(&mut self.ends[disk])
            .ahead = id;
    }
}

const NOWHERE: Link = Link {
    ahead: NOBODY,
    behind: NOBODY,
};
/// Stands for no zio. The number is larger than every id.
const NOBODY: u32 = u32::MAX;
/// The value of `ahead` in the link of a zio that is in the set and not in the list.
const LATE: u32 = NOBODY - 1;
/// If at least this many zios in the list arrived later than a new zio, the new zio goes into the set.
const PASSED_MAX: u32 = 64;

#[cfg(test)]
mod tests {
    use super::{Flights, State};
    use crate::client::ClientId;
    use crate::random::Random;
    use crate::time::Instant;
    use crate::zio::{DiskId, Op, Zio, ZioId};
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    #[test]
    fn the_list_of_a_disk_agrees_with_a_search_through_all() {
        let (mut random, mut flights) = (Random::new(5), Flights::default());
        let mut all: Vec<(u64, u32, u32)> = Vec::new();
        let mut late = 0;
        for now in 0..20_000 {
            let (id, device) = (random.below(1_000) as u32, random.below(3) as u32);
            if let Some(at) = all.iter().position(|(_, other, _)| *other == id) {
                all.remove(at);
                flights.get_mut(ZioId(id)).unwrap().state = State::Ended;
                flights.remove_ended(ZioId(id));
            } else {
                // For some zios, the header arrived long before the payload was complete.
                let arrived = now - random.below(2) * random.below(1_000).min(now);
                flights.insert(
                    Zio {
                        id: ZioId(id),
                        device: DiskId(device),
                        client: ClientId(0),
                        op: Op::Read,
                        fua: false,
                        call: None,
                        offset: 0,
                        length: 1,
                        arrived: Instant::from_nanos(arrived),
                    },
                    Instant::from_nanos(now),
                );
                all.push((arrived, id, device));
            }
            late = late.max(flights.late.iter().map(BTreeSet::len).sum());
            for disk in 0..3 {
                let listed = flights.of_disk(DiskId(disk));
                let listed: Vec<u64> = listed.map(|one| one.zio.arrived.as_nanos()).collect();
                let of_disk = all.iter().filter(|(_, _, device)| *device == disk);
                let mut expected: Vec<u64> = of_disk.map(|(arrived, _, _)| *arrived).collect();
                expected.sort_unstable();
                assert_eq!(listed, expected);
            }
        }
        assert!(late > 10, "{late}");
    }
}
