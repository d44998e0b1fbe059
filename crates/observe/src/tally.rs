//! A tally of finished I/Os: the I/Os that a question selects, by device, type and value of a breakdown.
//!
//! Sources that get single I/Os (the kernel, a simulation, a recording, a daemon's events) count with this. A
//! daemon also counts on its data path. Its collector has a table of its own, because it keeps each second.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use dashpot_engine::histogram::Histogram;
use foldhash::fast::RandomState;

use super::dimension::Dimension;
use super::finished::FinishedIo;
use super::interval::OpInterval;
use super::kind::Kind;
use super::parts::{Name, Names, Part, Parts};
use super::predicate::Predicates;
use super::question::Question;

/// The counts of an interval so far.
#[derive(Debug, Default)]
pub struct Tally {
    predicates: Predicates,
    by: Option<Dimension>,
    measure: Option<Dimension>,
    counted: HashMap<Key, Counted, RandomState>,
    parts: Parts,
    /// The device of the last I/O: neighbours often share its name.
    last_device: Option<(Arc<str>, Name)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The name of the device.
    device: Name,
    kind: Kind,
    letters: Option<Name>,
    part: Part,
}

#[derive(Debug, Default)]
struct Counted {
    completed: u64,
    bytes: u64,
    disk: Histogram,
    /// Left out while each I/O took as long as at the device.
    total: Option<Histogram>,
    store: Option<Histogram>,
    measured: Option<Histogram>,
}

impl Tally {
    /// Counts the I/Os that meet the predicates, by device, type and this dimension.
    pub fn new(predicates: Predicates, by: Option<Dimension>) -> Tally {
        Tally {
            predicates,
            by,
            ..Tally::default()
        }
    }

    /// Counts the I/Os that a question selects, with its breakdown and what it measures.
    pub fn of(question: &Question) -> Tally {
        Tally {
            measure: question.measure,
            ..Tally::new(question.predicates.clone(), question.by)
        }
    }

    /// Counts an I/O, if it is selected.
    pub fn add(&mut self, io: &FinishedIo) {
        if !self.predicates.select(io) {
            return;
        }
        let key = self.key(io);
        let measured = self.measure.and_then(|dimension| dimension.number(io));
        self.counted.entry(key).or_default().add(io, measured);
    }

    /// Counts I/Os of which only the device, the layer, the operation and the times from their beginning to their
    /// end are known, if they are selected. `like` has what they share.
    pub fn add_counted(&mut self, like: &FinishedIo, bytes: u64, latencies: &Histogram) {
        if !self.predicates.select(like) {
            return;
        }
        let key = self.key(like);
        self.counted.entry(key).or_default().merge(&Counted {
            completed: latencies.count(),
            bytes,
            disk: latencies.clone(),
            ..Counted::default()
        });
    }

    fn key(&mut self, io: &FinishedIo) -> Key {
        let key = Key {
            device: self.device(&io.device),
            kind: io.kind,
            letters: io
                .letters
                .as_deref()
                .map(|letters| self.parts.names.intern(letters)),
            part: self.part(io),
        };
        let is_full = self.counted.len() >= KEYS_MAX && key.part != Part::All;
        match is_full && !self.counted.contains_key(&key) {
            true => Key {
                part: Part::Other,
                ..key
            },
            false => key,
        }
    }

    fn device(&mut self, device: &Arc<str>) -> Name {
        match &self.last_device {
            Some((last, name)) if Arc::ptr_eq(last, device) => *name,
            _ => {
                let name = self.parts.names.intern(device);
                self.last_device = Some((Arc::clone(device), name));
                name
            }
        }
    }

    fn part(&mut self, io: &FinishedIo) -> Part {
        let Some(by) = self.by else {
            return Part::All;
        };
        let doublings = self.parts.reach(by, io);
        if doublings > 0 {
            self.merge_ranges(doublings);
        }
        self.parts.of(by, io)
    }

    /// Counts those ranges of offsets together that have become one.
    fn merge_ranges(&mut self, doublings: u32) {
        for (key, counted) in std::mem::take(&mut self.counted) {
            let part = key.part.merged(doublings);
            let merged = self.counted.entry(Key { part, ..key }).or_default();
            merged.merge(&counted);
        }
    }

    /// The devices of the selected I/Os, in the order of their names.
    pub fn devices(&self) -> Vec<Arc<str>> {
        let names = self
            .counted
            .keys()
            .map(|key| Arc::clone(self.parts.names.of(key.device)));
        let sorted: BTreeSet<Arc<str>> = names.collect();
        sorted.into_iter().collect()
    }

    /// The I/O of a device, by type and value.
    pub fn ops(&self, device: &str) -> Vec<OpInterval> {
        let Some(device) = self.parts.names.known(device) else {
            return Vec::new();
        };
        let own = self.counted.iter().filter(|(key, _)| key.device == device);
        let mut own: Vec<_> = own.collect();
        let letters = |key: &Key| key.letters.map(|letters| self.parts.names.of(letters));
        own.sort_unstable_by_key(|(key, _)| (letters(key), key.kind, key.part));
        own.into_iter()
            .map(|(key, counted)| self.op(key, counted))
            .collect()
    }

    fn op(&self, key: &Key, counted: &Counted) -> OpInterval {
        OpInterval {
            kind: key.kind,
            rwbs: key
                .letters
                .map(|letters| self.parts.names.of(letters).to_string()),
            by: self
                .by
                .and_then(|by| self.parts.name(by, key.kind, key.part)),
            completed: counted.completed,
            bytes: counted.bytes,
            time_ns: counted.disk.sum(),
            merged: 0,
            total: counted.total.as_ref().unwrap_or(&counted.disk).clone(),
            disk: counted.disk.clone(),
            store: counted.store.clone(),
            measured: counted.measured.clone(),
        }
    }

    /// Begins the next interval.
    pub fn clear(&mut self) {
        self.counted.clear();
        self.parts.names = Names::default();
        self.last_device = None;
    }
}

impl Counted {
    fn add(&mut self, io: &FinishedIo, measured: Option<u64>) {
        let (disk_ns, total_ns) = (io.at_device_ns(), io.total_ns());
        if self.total.is_none() && total_ns != disk_ns {
            self.total = Some(self.disk.clone());
        }
        if let Some(total) = &mut self.total {
            total.record(total_ns);
        }
        if let Some(ns) = io.in_store_ns() {
            self.store.get_or_insert_default().record(ns);
        }
        if let Some(number) = measured {
            self.measured.get_or_insert_default().record(number);
        }
        self.completed += 1;
        self.bytes += io.bytes_done();
        self.disk.record(disk_ns);
    }

    fn merge(&mut self, other: &Counted) {
        if self.total.is_some() || other.total.is_some() {
            let total = self.total.get_or_insert_with(|| self.disk.clone());
            total.merge(other.total.as_ref().unwrap_or(&other.disk));
        }
        if let Some(store) = &other.store {
            self.store.get_or_insert_default().merge(store);
        }
        if let Some(measured) = &other.measured {
            self.measured.get_or_insert_default().merge(measured);
        }
        self.completed += other.completed;
        self.bytes += other.bytes;
        self.disk.merge(&other.disk);
    }
}

/// The most sets of histograms in an interval. At 10 to 20 KiB for a histogram they take at most 120
/// MiB. Values beyond that are counted as [`OTHER`](super::interval::OTHER).
pub const KEYS_MAX: usize = 2_048;
#[cfg(test)]
mod tests;
