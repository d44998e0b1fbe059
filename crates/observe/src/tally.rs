//! A tally counts the finished I/Os that a question selects, by device, type and value of a breakdown.
//!
//! Sources that get single I/Os (the kernel, a simulation, a recording, a daemon's events) count with a
//! tally. The daemon's own collector counts in a table instead, because it keeps the counts of each second
//! separately.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use dashpot_engine::histogram::Histogram;
use foldhash::fast::RandomState;

use super::counts::{Counts, record};
use super::dimension::Dimension;
use super::finished::FinishedIo;
use super::groups::{Group, Groups};
use super::interval::OpInterval;
use super::kind::Kind;
use super::parts::{Name, Names, Part, Parts};
use super::predicate::Predicates;
use super::question::Question;
use super::value::Unit;

/// The counts of an interval so far.
#[derive(Debug, Default)]
pub struct Tally {
    predicates: Predicates,
    by: Option<Dimension>,
    measure: Option<Dimension>,
    counts_only: bool,
    places: HashMap<Key, CountIndex, RandomState>,
    /// The counts of each place.
    counted: Vec<Counts>,
    parts: Parts,
    /// The device of the last I/O, because consecutive I/Os often have the same device.
    last_device: Option<(Arc<str>, Name)>,
    /// One I/O for each of the first few combinations of names (of device, client and so on). Most I/Os share
    /// their names with one of these I/Os, and comparing names is faster than looking them up.
    known: Vec<(FinishedIo, Alike)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    device: Name,
    kind: Kind,
    letters: Option<Name>,
    part: Part,
}

/// An index into the counts.
#[derive(Clone, Copy, Debug)]
struct CountIndex(usize);

/// The facts that a tally keeps about I/Os with the same names, until it is cleared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alike {
    /// Whether the I/Os' names meet the predicates.
    is_selected: Option<bool>,
    /// The place of these I/Os in the counts, if their names alone decide it.
    place: Option<CountIndex>,
}

impl Tally {
    /// A tally of the I/Os that meet the predicates, by device, type and this dimension.
    pub fn new(predicates: Predicates, by: Option<Dimension>) -> Tally {
        Tally {
            predicates,
            by,
            ..Tally::default()
        }
    }

    /// A tally of the I/Os that a question selects, with the question's breakdown and measured numbers.
    pub fn of(question: &Question) -> Tally {
        Tally {
            measure: question.measure,
            counts_only: question.counts_only,
            ..Tally::new(question.predicates.clone(), question.by)
        }
    }

    /// Counts an I/O if the predicates select it.
    pub fn add(&mut self, io: &FinishedIo) {
        let known = self.known.iter();
        let at = known.clone().position(|(like, _)| like.has_names_of(io));
        let mut alike = at.map_or_else(Alike::default, |at| self.known[at].1);
        self.add_alike(io, &mut alike);
        match at {
            Some(at) => self.known[at].1 = alike,
            None if self.known.len() < KNOWN_MAX => self.known.push((io.clone(), alike)),
            None => {}
        }
    }

    /// Counts an I/O as [`Tally::add`] does. The caller passes the same `alike` for all I/Os that share their
    /// names: their device and layer, their operation, and who asked for them.
    pub fn add_alike(&mut self, io: &FinishedIo, alike: &mut Alike) {
        let predicates = &self.predicates;
        let select = || predicates.select_names(io);
        if !*alike.is_selected.get_or_insert_with(select) || !predicates.select_numbers(io) {
            return;
        }
        let place = match alike.place {
            Some(place) => place,
            None => self.place(io),
        };
        if self.by.is_none_or(|by| by.unit() == Unit::Name) {
            alike.place = Some(place);
        }
        let counted = &mut self.counted[place.0];
        counted.completed += 1;
        counted.bytes += io.bytes_done();
        counted.merged += u64::from(io.merged);
        if !self.counts_only {
            counted.add_times(io);
        }
        if let Some(number) = self.measure.and_then(|dimension| dimension.number(io)) {
            record(&mut counted.measured, number);
        }
    }

    /// Counts an I/O that has the same names as `like`, if the predicates select these names. The I/O's time
    /// at the device must be in the range that the question asks for. `alike` is as in [`Tally::add_alike`].
    /// The question must need no number other than this time: see [`Question::needs`].
    pub fn add_latency(
        &mut self,
        like: &FinishedIo,
        alike: &mut Alike,
        bytes: u64,
        latency_ns: u64,
    ) {
        let predicates = &self.predicates;
        if !*alike
            .is_selected
            .get_or_insert_with(|| predicates.select_names(like))
        {
            return;
        }
        let place = match alike.place {
            Some(place) => place,
            None => self.place(like),
        };
        alike.place = Some(place);
        let measures = self.measure == Some(Dimension::Latency);
        let counted = &mut self.counted[place.0];
        counted.completed += 1;
        counted.bytes += bytes;
        if !self.counts_only {
            record(&mut counted.disk, latency_ns);
        }
        if measures {
            record(&mut counted.measured, latency_ns);
        }
    }

    /// Counts I/Os that have the same names as `like`, if the predicates select these names. The I/Os' times
    /// at the device must be in the range that the question asks for. The question must need no figures of
    /// single I/Os, such as their latencies: see [`Question::needs`].
    pub fn add_counts(&mut self, like: &FinishedIo, count: u64, bytes: u64) {
        if self.predicates.select_names(like) {
            let CountIndex(place) = self.place(like);
            self.counted[place].completed += count;
            self.counted[place].bytes += bytes;
        }
    }

    /// Counts I/Os of which only the device, the layer, the operation and the times from beginning to end are
    /// known, if the predicates select them. `like` has the facts that these I/Os share.
    pub fn add_counted(&mut self, like: &FinishedIo, bytes: u64, latencies: &Histogram) {
        if !self.predicates.select(like) {
            return;
        }
        let CountIndex(place) = self.place(like);
        self.counted[place].merge(&Counts {
            completed: latencies.count(),
            bytes,
            disk: Some(Box::new(latencies.clone())),
            ..Counts::default()
        });
    }

    fn place(&mut self, io: &FinishedIo) -> CountIndex {
        let key = self.key(io);
        self.place_of(key)
    }

    fn place_of(&mut self, key: Key) -> CountIndex {
        *self.places.entry(key).or_insert_with(|| {
            self.counted.push(Counts::default());
            CountIndex(self.counted.len() - 1)
        })
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
        let is_full = self.places.len() >= KEYS_MAX && key.part != Part::All;
        if is_full && !self.places.contains_key(&key) {
            Key {
                part: Part::Other,
                ..key
            }
        } else {
            key
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

    /// Adds up the counts of ranges of offsets that have become one range.
    fn merge_ranges(&mut self, doublings: u32) {
        let counted = std::mem::take(&mut self.counted);
        for (key, CountIndex(place)) in std::mem::take(&mut self.places) {
            let part = key.part.merged(doublings);
            let CountIndex(merged) = self.place_of(Key { part, ..key });
            self.counted[merged].merge(&counted[place]);
        }
    }

    /// The devices of the selected I/Os, in the order of their names.
    pub fn devices(&self) -> Vec<Arc<str>> {
        let names = self
            .places
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
        let own = self.places.iter().filter(|(key, _)| key.device == device);
        let mut own: Vec<_> = own.collect();
        let letters = |key: &Key| key.letters.map(|letters| self.parts.names.of(letters));
        own.sort_unstable_by_key(|(key, _)| (letters(key), key.kind, key.part));
        own.into_iter()
            .map(|(key, CountIndex(place))| self.op(key, &self.counted[*place]))
            .collect()
    }

    /// The I/Os of each value, over all devices and types, with the numbers that the question measures. Begins
    /// the next interval, because unlike [`Tally::ops`], this function copies no histograms.
    pub fn take_groups(&mut self) -> Groups {
        let mut groups = Groups::default();
        let mut counted = std::mem::take(&mut self.counted);
        for (key, CountIndex(place)) in &self.places {
            let counts = std::mem::take(&mut counted[*place]);
            groups.add(Group {
                value: self.value(key).unwrap_or_default(),
                count: counts.completed,
                bytes: counts.bytes,
                numbers: counts.measured,
            });
        }
        self.clear();
        groups
    }

    fn value(&self, key: &Key) -> Option<String> {
        self.by
            .and_then(|by| self.parts.name(by, key.kind, key.part))
    }

    fn op(&self, key: &Key, counts: &Counts) -> OpInterval {
        let letters = key.letters.map(|letters| self.parts.names.of(letters));
        OpInterval {
            rwbs: letters.map(ToString::to_string),
            ..OpInterval::of(key.kind, self.value(key), counts.clone())
        }
    }

    /// Begins the next interval.
    pub fn clear(&mut self) {
        self.places.clear();
        self.counted.clear();
        self.parts.names = Names::default();
        self.last_device = None;
        self.known.clear();
    }
}

/// The maximum number of sets of histograms in an interval. There is a set for each combination of device,
/// type and value of the breakdown. A set has up to four histograms of 10 KiB, so the sets take about 80 MiB
/// at most. When there is no room for another set, new values of the breakdown are counted as
/// [`OTHER`](super::interval::OTHER).
pub const KEYS_MAX: usize = 2_048;
/// The maximum number of combinations of names in a tally's `known`.
const KNOWN_MAX: usize = 8;

#[cfg(test)]
mod tests;
