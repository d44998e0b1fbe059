//! A tally of finished I/Os, by device, type and value of a breakdown.
//!
//! Sources that get single I/Os (the kernel and a simulation) count with this. A daemon counts on
//! its data path instead. Its collector has a table of its own, because it also keeps each second.

use std::collections::HashMap;

use dashpot_engine::Op;
use dashpot_engine::histogram::Histogram;
use foldhash::fast::RandomState;

use super::interval::{OTHER, OpInterval};
use super::kind::Kind;
use super::size::{size_class, size_name};

/// The counts of an interval so far. `T` is the type of an I/O as the source knows it.
#[derive(Debug)]
pub struct Tally<T> {
    counted: HashMap<Key<T>, Counted, RandomState>,
    names: Names,
}

/// A type of I/O as a source knows it.
pub trait Type: Copy + Ord + std::hash::Hash {
    /// Its kind.
    fn kind(&self) -> Kind;

    /// The kernel's letters for it, if it has any.
    fn letters(&self) -> Option<String>;
}

/// An I/O that has finished.
#[derive(Clone, Copy, Debug)]
pub struct Sample<T> {
    /// The index of its device among the watched ones.
    pub device: usize,
    /// Its type.
    pub of: T,
    /// Its bytes.
    pub bytes: u64,
    /// See [`OpInterval::disk`].
    pub disk_ns: u64,
    /// See [`OpInterval::total`]; `None` if it is the time at the disk.
    pub total_ns: Option<u64>,
    /// See [`OpInterval::store`].
    pub store_ns: Option<u64>,
}

/// The value of a breakdown that an I/O belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// There is no breakdown.
    All,
    /// The class of this size in bytes.
    Size(u64),
    /// A client, a process or a control group.
    Named(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key<T> {
    device: usize,
    of: T,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Value {
    All,
    Size(u32),
    /// An index into the names.
    Named(usize),
    Other,
}

#[derive(Debug, Default)]
struct Counted {
    completed: u64,
    bytes: u64,
    disk: Histogram,
    total: Option<Histogram>,
    store: Option<Histogram>,
}

/// Names in the order of their first I/Os.
#[derive(Debug, Default)]
struct Names {
    places: HashMap<String, usize, RandomState>,
    names: Vec<String>,
}

impl Type for Op {
    fn kind(&self) -> Kind {
        Kind::Op(*self)
    }

    fn letters(&self) -> Option<String> {
        None
    }
}

impl<T> Default for Tally<T> {
    fn default() -> Tally<T> {
        Tally {
            counted: HashMap::default(),
            names: Names::default(),
        }
    }
}

impl<T: Type> Tally<T> {
    /// Counts an I/O.
    pub fn add(&mut self, sample: &Sample<T>, part: Part<'_>) {
        let mut key = Key {
            device: sample.device,
            of: sample.of,
            value: self.value(part),
        };
        let is_full = self.counted.len() >= KEYS_MAX && key.value != Value::All;
        if is_full && !self.counted.contains_key(&key) {
            key.value = Value::Other;
        }
        self.counted.entry(key).or_default().add(sample);
    }

    fn value(&mut self, part: Part<'_>) -> Value {
        match part {
            Part::All => Value::All,
            Part::Size(bytes) => Value::Size(size_class(bytes)),
            Part::Named(name) => self.names.value(name),
        }
    }

    /// The I/O of a device, by type and value.
    pub fn ops(&self, device: usize) -> Vec<OpInterval> {
        let own = self.counted.iter().filter(|(key, _)| key.device == device);
        let mut own: Vec<_> = own.collect();
        own.sort_unstable_by_key(|(key, _)| **key);
        own.into_iter()
            .map(|(key, counted)| self.op(key, counted))
            .collect()
    }

    fn op(&self, key: &Key<T>, counted: &Counted) -> OpInterval {
        OpInterval {
            kind: key.of.kind(),
            rwbs: key.of.letters(),
            by: self.name(key.value),
            completed: counted.completed,
            bytes: counted.bytes,
            time_ns: counted.disk.sum(),
            merged: 0,
            total: counted.total.as_ref().unwrap_or(&counted.disk).clone(),
            disk: counted.disk.clone(),
            store: counted.store.clone(),
        }
    }

    fn name(&self, value: Value) -> Option<String> {
        Some(match value {
            Value::All => return None,
            Value::Size(class) => size_name(class),
            Value::Named(place) => self.names.names[place].clone(),
            Value::Other => OTHER.to_owned(),
        })
    }

    /// Begins the next interval.
    pub fn clear(&mut self) {
        self.counted.clear();
        self.names = Names::default();
    }
}

impl Counted {
    fn add<T>(&mut self, sample: &Sample<T>) {
        self.completed += 1;
        self.bytes += sample.bytes;
        self.disk.record(sample.disk_ns);
        if let Some(ns) = sample.total_ns {
            self.total.get_or_insert_default().record(ns);
        }
        if let Some(ns) = sample.store_ns {
            self.store.get_or_insert_default().record(ns);
        }
    }
}

impl Names {
    fn value(&mut self, name: &str) -> Value {
        if let Some(&place) = self.places.get(name) {
            return Value::Named(place);
        }
        let place = self.names.len();
        if place == KEYS_MAX {
            return Value::Other;
        }
        self.places.insert(name.to_owned(), place);
        self.names.push(name.to_owned());
        Value::Named(place)
    }
}

/// The most sets of histograms in an interval. At 10 to 20 KiB for a histogram they take at most 80
/// MiB. Values beyond that are counted as [`OTHER`].
pub const KEYS_MAX: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(device: usize, of: Op) -> Sample<Op> {
        Sample {
            device,
            of,
            bytes: 4_096,
            disk_ns: 6_000,
            total_ns: Some(9_000),
            store_ns: Some(1_000),
        }
    }

    #[test]
    fn devices_and_types_are_apart_and_add_up() {
        let mut tally = Tally::default();
        for (device, op) in [(0, Op::Read), (0, Op::Write), (0, Op::Read), (1, Op::Read)] {
            tally.add(&sample(device, op), Part::All);
        }
        let ops = tally.ops(0).into_iter();
        let seen = ops.map(|op| (op.kind, op.completed, op.bytes, op.time_ns, op.total.sum()));
        let expected = [
            (Kind::Op(Op::Read), 2, 8_192, 12_000, 18_000),
            (Kind::Op(Op::Write), 1, 4_096, 6_000, 9_000),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        assert_eq!(tally.ops(1)[0].store.as_ref().unwrap().count(), 1);
        tally.clear();
        assert!(tally.ops(0).is_empty());
    }

    #[test]
    fn values_have_their_names() {
        let mut tally = Tally::default();
        tally.add(&sample(0, Op::Read), Part::Size(4_096));
        tally.add(&sample(0, Op::Read), Part::Named("dd"));
        let names = tally.ops(0).into_iter().map(|op| op.by.unwrap());
        assert_eq!(names.collect::<Vec<_>>(), ["4K-8K", "dd"]);
    }

    #[test]
    fn values_beyond_the_most_are_other_and_counted() {
        let mut tally = Tally::default();
        let more = KEYS_MAX + 100;
        for at in 0..more {
            tally.add(&sample(0, Op::Read), Part::Named(&format!("p{at}")));
        }
        let ops = tally.ops(0);
        assert!(ops.len() <= KEYS_MAX + 1);
        let all: u64 = ops.iter().map(|op| op.completed).sum();
        assert_eq!(all, more as u64);
        let other = ops.iter().find(|op| op.by.as_deref() == Some(OTHER));
        assert_eq!(other.map(|op| op.completed), Some(100));
    }
}
