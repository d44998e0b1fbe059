//! The figures that the collector makes from events and keeps.

use std::collections::{BTreeMap, BTreeSet, TryReserveError};
use std::sync::Arc;

use dashpot_engine::{ClientId, Op};
use dashpot_export::{DeviceId, EventRecord, FinishedZio};

use super::clients::{ClientIndex, Clients, OTHERS};
use super::open::{Cell, Open};
use super::recent::Recent;
use super::seconds::{SecondCell, Seconds};
use super::tally::{Measured, Tally};

/// One part of a device's I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The I/O of a client, by the client's place.
    Client(ClientIndex),
    /// Zios of 0 bytes (`None`), or of at least this power of two and less than the next.
    Size(Option<u8>),
}

/// The key of a count: one operation of one part of a device's I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    device: DeviceId,
    part: Part,
    op: Op,
}

/// The collected I/O.
///
/// The current second has a full histogram for each combination of client and size. The past has compact
/// histograms, for each client and for each size.
#[derive(Debug)]
pub struct Collected {
    /// The clients of each device, by the device's index.
    clients: Vec<Clients>,
    clients_come: u32,
    totals: BTreeMap<Key, Tally>,
    seconds: Seconds,
    recent: Recent,
    /// The current second.
    second: u64,
    open: Open,
}

impl Collected {
    /// Makes room for this many devices, and for `bytes` of finished zios.
    pub(super) fn new(devices: usize, bytes: u64) -> Result<Collected, TryReserveError> {
        Ok(Collected {
            clients: (0..devices).map(|_| Clients::new()).collect(),
            clients_come: 0,
            totals: BTreeMap::new(),
            seconds: Seconds::default(),
            recent: Recent::new(bytes)?,
            second: 0,
            open: Open::default(),
        })
    }

    #[inline]
    pub(super) fn take(&mut self, record: &EventRecord) {
        match record {
            EventRecord::Zio(zio) => self.zio(zio),
            EventRecord::Joined {
                device,
                client,
                name,
            } => self.join(*device, *client, name),
        }
    }

    fn join(&mut self, device: DeviceId, client: ClientId, name: &str) {
        let (place, taken) = self.clients[device.index()].place_for(name);
        if taken {
            self.count_with_others(device, place);
        }
        self.clients_come += 1;
        let (name, number): (Arc<str>, _) = (name.into(), self.clients_come);
        let clients = &mut self.clients[device.index()];
        clients.join(client, Arc::clone(&name), place, number, self.second);
        let present = self.clients.iter().flat_map(Clients::numbers);
        self.recent.name(number, name, present);
    }

    #[inline]
    fn zio(&mut self, zio: &FinishedZio) {
        let measured = Measured::of(zio);
        let second = measured.ended() / SECOND_NS;
        if second != self.second || self.open.is_full() {
            self.settle();
            self.second = second;
        }
        let client = self.clients[zio.device.index()].of(zio.client);
        let cell = Cell {
            device: zio.device,
            client: client.place,
            size: zio.length.checked_ilog2().map(|power| power as u8),
            op: zio.op,
        };
        match self.open.counting(cell) {
            Some(counting) => counting.count(&measured),
            None => {
                let clients = &mut self.clients[zio.device.index()];
                clients.touch(client.place, second);
                self.open.begin(cell).count(&measured);
            }
        }
        self.recent.push(zio, client.number, second);
    }

    /// Adds the current second to the past seconds.
    pub(super) fn settle(&mut self) {
        let Collected {
            clients,
            totals,
            seconds,
            ..
        } = self;
        let second = self.second;
        self.open.close(|cell, counting| {
            let Cell {
                device, client, op, ..
            } = cell;
            let tally = counting.tally();
            for part in [Part::Client(client), Part::Size(cell.size)] {
                let key = Key { device, part, op };
                totals.entry(key).or_default().merge(&tally);
            }
            let cell = SecondCell {
                device,
                client: clients[device.index()].name(client),
                op,
                tally: tally.brief,
            };
            seconds.add(second, cell);
        });
    }

    /// Moves the counts of a client's place to [`OTHERS`].
    fn count_with_others(&mut self, device: DeviceId, place: ClientIndex) {
        if self.open.has_client(device, place) {
            self.settle();
        }
        for op in Op::ALL {
            let key = |place| Key {
                device,
                part: Part::Client(place),
                op,
            };
            if let Some(moved) = self.totals.remove(&key(place)) {
                self.totals.entry(key(OTHERS)).or_default().merge(&moved);
            }
        }
    }

    /// The counts of each part of a device since the start.
    pub fn parts(&self, device: DeviceId) -> impl Iterator<Item = (Part, Op, &Tally)> {
        let first = |device| Key {
            device,
            part: Part::Client(0),
            op: Op::Read,
        };
        let next = DeviceId(device.0 + 1);
        let of_device = self.totals.range(first(device)..first(next));
        of_device.map(|(key, tally)| (key.part, key.op, tally))
    }

    /// The name of the client at a place of a device.
    pub fn client(&self, device: DeviceId, place: ClientIndex) -> Arc<str> {
        self.clients[device.index()].name(place)
    }

    /// The names of the clients that are counted separately, sorted.
    pub fn client_names(&self) -> Vec<String> {
        let names = self.clients.iter().flat_map(Clients::names);
        let sorted: BTreeSet<&str> = names.collect();
        sorted.into_iter().map(str::to_owned).collect()
    }

    /// The I/O of past seconds, minutes and hours.
    pub(crate) fn seconds(&self) -> &Seconds {
        &self.seconds
    }

    /// The remembered zios.
    pub(crate) fn recent(&self) -> &Recent {
        &self.recent
    }
}

const SECOND_NS: u64 = 1_000_000_000;
