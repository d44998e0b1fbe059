//! All that is made of events.

use std::collections::{BTreeMap, TryReserveError};
use std::sync::Arc;

use dashpot_engine::Op;
use dashpot_export::{FinishedZio, Record};

use super::clients::{Clients, OTHERS, Place};
use super::recent::Recent;
use super::seconds::{SecondCell, Seconds};
use super::tally::{Counting, Measured, Tally};

/// A part of what is done on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// By a client, by its place among those counted apart.
    Client(Place),
    /// In zios of a size: none, or from this power of two on to the next.
    Size(Option<u8>),
}

impl Part {
    fn of_size(length: u32) -> Part {
        Part::Size(length.checked_ilog2().map(|power| power as u8))
    }

    /// Its place among all parts.
    fn index(self) -> usize {
        match self {
            Part::Client(place) => usize::from(place),
            Part::Size(None) => usize::from(OTHERS) + 1,
            Part::Size(Some(power)) => usize::from(OTHERS) + 2 + usize::from(power),
        }
    }
}

/// Clients, one for the others, no size, and the powers of two of 32 bits.
const PARTS: usize = OTHERS as usize + 1 + 1 + u32::BITS as usize;

/// One operation of a part of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    disk: u16,
    part: Part,
    op: Op,
}

impl Key {
    fn index(self) -> usize {
        (usize::from(self.disk) * PARTS + self.part.index()) * Op::ALL.len() + self.op as usize
    }
}

/// What was collected.
///
/// The second in which zios end is counted in histograms of full size, which are used again for the
/// next; what is over is kept in little room.
#[derive(Debug)]
pub(crate) struct Collected {
    /// By disk.
    clients: Vec<Clients>,
    clients_come: u32,
    totals: BTreeMap<Key, Tally>,
    seconds: Seconds,
    recent: Recent,
    /// The second that is counted.
    second: u64,
    /// By [`Key::index`]: where in `counting` it is, if it is.
    places: Vec<u16>,
    /// What has a place, with room that was used before behind it.
    counting: Vec<Counting>,
    keys: Vec<Key>,
}

impl Collected {
    /// Of so many disks, with so many `bytes` of finished zios.
    pub(super) fn new(disks: usize, bytes: u64) -> Result<Collected, TryReserveError> {
        Ok(Collected {
            clients: (0..disks).map(|_| Clients::new()).collect(),
            clients_come: 0,
            totals: BTreeMap::new(),
            seconds: Seconds::default(),
            recent: Recent::new(bytes)?,
            second: 0,
            places: vec![NO_PLACE; disks * PARTS * Op::ALL.len()],
            counting: Vec::new(),
            keys: Vec::new(),
        })
    }

    #[inline]
    pub(super) fn take(&mut self, record: Record) {
        match record {
            Record::Zio(zio) => self.zio(zio),
            Record::Joined { disk, client, name } => {
                let name: Arc<str> = name.into();
                let (place, taken) = self.clients[usize::from(disk)].place_for(&name);
                if taken {
                    self.count_with_others(disk, place);
                }
                self.clients_come += 1;
                let number = self.clients_come;
                let clients = &mut self.clients[usize::from(disk)];
                clients.join(client, Arc::clone(&name), place, number, self.second);
                let present = self.clients.iter().flat_map(Clients::numbers);
                self.recent.name(number, name, present);
            }
        }
    }

    #[inline]
    fn zio(&mut self, zio: FinishedZio) {
        let client = self.clients[usize::from(zio.disk)].of(zio.client);
        let second = zio.ended().as_nanos() / SECOND_NS;
        if second != self.second || self.keys.len() + 2 > COUNTING {
            self.settle();
            self.second = second;
        }
        let measured = Measured::of(&zio);
        for part in [Part::Client(client.place), Part::of_size(zio.length)] {
            let (disk, op) = (zio.disk, zio.op);
            self.counting(Key { disk, part, op }).count(&measured);
        }
        self.recent.push(zio, client.number);
    }

    #[inline]
    fn counting(&mut self, key: Key) -> &mut Counting {
        let index = key.index();
        if self.places[index] == NO_PLACE {
            self.places[index] = self.keys.len() as u16;
            self.keys.push(key);
            if self.counting.len() < self.keys.len() {
                self.counting.push(Counting::default());
            }
            if let Part::Client(place) = key.part {
                self.clients[usize::from(key.disk)].touch(place, self.second);
            }
        }
        &mut self.counting[usize::from(self.places[index])]
    }

    /// Adds what is being counted to what was.
    pub(super) fn settle(&mut self) {
        for (key, counting) in self.keys.drain(..).zip(&mut self.counting) {
            self.places[key.index()] = NO_PLACE;
            self.totals.entry(key).or_default().add(counting);
            if let Part::Client(place) = key.part {
                let cell = SecondCell {
                    disk: key.disk,
                    client: self.clients[usize::from(key.disk)].name(place),
                    op: key.op,
                    tally: counting.brief(),
                };
                self.seconds.add(self.second, cell);
            }
            *counting = Counting::default();
        }
    }

    /// Moves what was counted at a client's place to the others.
    fn count_with_others(&mut self, disk: u16, place: Place) {
        let part = Part::Client(place);
        let counted = |op| self.places[Key { disk, part, op }.index()] != NO_PLACE;
        if Op::ALL.into_iter().any(counted) {
            self.settle();
        }
        for op in Op::ALL {
            if let Some(moved) = self.totals.remove(&Key { disk, part, op }) {
                let part = Part::Client(OTHERS);
                let others = self.totals.entry(Key { disk, part, op }).or_default();
                others.merge(&moved);
            }
        }
    }

    /// What was counted of each part of a disk since the start.
    pub(crate) fn parts(&self, disk: u16) -> impl Iterator<Item = (Part, Op, &Tally)> {
        let first = |disk| Key {
            disk,
            part: Part::Client(0),
            op: Op::Read,
        };
        let of_disk = self.totals.range(first(disk)..first(disk + 1));
        of_disk.map(|(key, tally)| (key.part, key.op, tally))
    }

    /// Who is counted at a place of a disk.
    pub(crate) fn client(&self, disk: u16, place: Place) -> Arc<str> {
        self.clients[usize::from(disk)].name(place)
    }

    /// What was done in each second, the oldest first; seconds without any are left out.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = (u64, &[SecondCell])> {
        self.seconds.iter()
    }

    /// Where a reader is that has read everything.
    pub(crate) fn now(&self) -> u64 {
        self.recent.now()
    }

    /// How many zios after a cursor are not remembered any more.
    pub(crate) fn forgotten(&self, cursor: u64) -> u64 {
        self.recent.oldest().saturating_sub(cursor)
    }

    /// The zios from a cursor on, with their own cursors and the names of their clients.
    pub(crate) fn after(&self, cursor: u64) -> impl Iterator<Item = (u64, &FinishedZio, &str)> {
        self.recent.after(cursor)
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> usize {
        self.recent.names()
    }
}

const SECOND_NS: u64 = 1_000_000_000;
/// How much is counted at once: 52 MiB, if 1,024 parts are busy in the same second.
const COUNTING: usize = 1_024;
const NO_PLACE: u16 = u16::MAX;
