//! Finished I/Os of the kernel's disks, counted by device, type and what they are broken down by.

use std::collections::HashMap;

use dashpot_engine::histogram::Histogram;
use dashpot_observe::{By, OTHER, OpInterval, Question, size_class, size_name};
use dashpot_probe::{Cgroups, Device, Io, Rwbs};
use foldhash::fast::RandomState;

/// What an interval has counted so far.
pub(super) struct Tally {
    devices: Vec<Device>,
    question: Question,
    counted: HashMap<Key, Counted, RandomState>,
    cgroups: Cgroups,
    names: Names,
}

/// Names in the order in which they came up.
#[derive(Default)]
struct Names {
    places: HashMap<String, usize, RandomState>,
    names: Vec<String>,
}

/// What is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    /// Its place among those that are watched.
    device: usize,
    rwbs: Rwbs,
    value: Value,
}

/// A value of what is broken down by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Value {
    /// Nothing is.
    All,
    /// The class of a size.
    Size(u32),
    /// A place among the names of processes or control groups.
    Named(usize),
    /// The kernel itself: it makes one flush of those that several have asked for.
    Flush,
    /// Who asked was not seen.
    Unknown,
    /// Too many to be told apart.
    Other,
}

#[derive(Default)]
struct Counted {
    completed: u64,
    bytes: u64,
    disk: Histogram,
    total: Option<Histogram>,
}

impl Tally {
    pub(super) fn new(devices: &[Device], question: Question) -> Tally {
        Tally {
            devices: devices.to_vec(),
            question,
            counted: HashMap::default(),
            cgroups: Cgroups::default(),
            names: Names::default(),
        }
    }

    /// Counts an I/O.
    pub(super) fn add(&mut self, io: &Io) {
        let mut devices = self.devices.iter();
        let Some(device) = devices.position(|device| device.has(io.device, io.sector)) else {
            return;
        };
        let mut key = Key {
            device,
            rwbs: io.rwbs,
            value: self.value(io),
        };
        let full = self.counted.len() >= KEYS_MAX && key.value != Value::All;
        if full && !self.counted.contains_key(&key) {
            key.value = Value::Other;
        }
        let counted = self.counted.entry(key).or_default();
        counted.completed += 1;
        counted.bytes += io.bytes;
        counted
            .disk
            .record(io.completed_ns.saturating_sub(io.issued_ns));
        if self.question.queued {
            let begun_ns = io.queued_ns.unwrap_or(io.issued_ns);
            let total = counted.total.get_or_insert_default();
            total.record(io.completed_ns.saturating_sub(begun_ns));
        }
    }

    fn value(&mut self, io: &Io) -> Value {
        match (self.question.by, &io.submitter) {
            (None | Some(By::Client), _) => Value::All,
            (Some(By::Size), _) => Value::Size(size_class(io.bytes)),
            (_, None) if op_word(io.rwbs.bytes()) == "flush" => Value::Flush,
            (_, None) => Value::Unknown,
            (Some(By::Process), Some(submitter)) => self.names.value(&submitter.name(io.rwbs)),
            (Some(By::Cgroup), Some(submitter)) => {
                self.names.value(self.cgroups.of(submitter, io.rwbs))
            }
        }
    }

    /// What a device did, by type and value.
    pub(super) fn ops(&self, device: usize) -> Vec<OpInterval> {
        let own = self.counted.iter().filter(|(key, _)| key.device == device);
        let mut own: Vec<_> = own.collect();
        own.sort_unstable_by_key(|(key, _)| **key);
        own.into_iter()
            .map(|(key, counted)| self.op(key, counted))
            .collect()
    }

    fn op(&self, key: &Key, counted: &Counted) -> OpInterval {
        OpInterval {
            op: op_word(key.rwbs.bytes()).to_owned(),
            rwbs: Some(key.rwbs.to_string()),
            by: self.name(key.value),
            completed: counted.completed,
            bytes: counted.bytes,
            total: counted.total.as_ref().unwrap_or(&counted.disk).clone(),
            disk: counted.disk.clone(),
            store: None,
        }
    }

    fn name(&self, value: Value) -> Option<String> {
        Some(match value {
            Value::All => return None,
            Value::Size(class) => size_name(class),
            Value::Named(place) => self.names.names[place].clone(),
            Value::Flush => FLUSH.to_owned(),
            Value::Unknown => "unknown".to_owned(),
            Value::Other => OTHER.to_owned(),
        })
    }

    /// Begins the next interval.
    pub(super) fn clear(&mut self) {
        self.counted.clear();
        self.names = Names::default();
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

/// dashpot's word for the kernel's letters: an `F` before the operation asks for a flush first, and
/// alone is one.
pub(super) fn op_word(rwbs: &[u8]) -> &'static str {
    let flushes = rwbs.iter().take_while(|&&letter| letter == b'F').count();
    match (&rwbs[flushes..], flushes) {
        ([b'R', ..], _) => "read",
        ([b'W', b'Z', ..], _) => "zero",
        ([b'W', ..], _) => "write",
        ([b'D', ..], _) => "trim",
        (_, 1..) => "flush",
        _ => "other",
    }
}

/// Histograms of an interval: at 10 to 20 KiB each, 40 MiB at most. Beyond, what is new is counted
/// as `other`.
pub(crate) const KEYS_MAX: usize = 2_048;
/// The name for flushes of the kernel's own.
const FLUSH: &str = "flush";

#[cfg(test)]
mod tests {
    use super::*;
    use dashpot_probe::{Comm, Layer, Number, Submitter};

    const DISK: Number = Number { major: 7, minor: 1 };

    fn tally(by: Option<By>, parts: &[Option<std::ops::Range<u64>>]) -> Tally {
        let device = |(at, part): (usize, &Option<std::ops::Range<u64>>)| Device {
            name: format!("d{at}"),
            number: DISK,
            disk: DISK,
            part: part.clone(),
            layer: Layer::Request,
        };
        let devices: Vec<Device> = parts.iter().enumerate().map(device).collect();
        let question = Question {
            by,
            ..Question::default()
        };
        Tally::new(&devices, question)
    }

    fn io(rwbs: &str, sector: u64, bytes: u64, comm: &str) -> Io {
        Io {
            device: DISK,
            rwbs: Rwbs::new(rwbs.as_bytes()),
            sector,
            bytes,
            queued_ns: Some(1_000),
            issued_ns: 4_000,
            completed_ns: 10_000,
            error: 0,
            merged: 0,
            requeued: 0,
            submitter: Some(Submitter {
                pid: 1,
                comm: Comm::new(comm.as_bytes()),
            }),
        }
    }

    #[test]
    fn letters_have_dashpots_words() {
        for (letters, word) in [
            ("R", "read"),
            ("RAM", "read"),
            ("WS", "write"),
            ("FWFS", "write"),
            ("WZ", "zero"),
            ("DS", "trim"),
            ("F", "flush"),
            ("FF", "flush"),
            ("FS", "flush"),
            ("N", "other"),
            ("", "other"),
        ] {
            assert_eq!(op_word(letters.as_bytes()), word, "{letters}");
        }
    }

    #[test]
    fn types_are_apart_and_add_up() {
        let mut tally = tally(None, &[None]);
        for rwbs in ["R", "WS", "R"] {
            tally.add(&io(rwbs, 0, 4_096, "dd"));
        }
        let ops = tally.ops(0);
        let seen: Vec<_> = ops
            .iter()
            .map(|op| (op.rwbs.as_deref(), op.completed, op.bytes, op.disk.sum()))
            .collect();
        assert_eq!(
            seen,
            [(Some("R"), 2, 8_192, 12_000), (Some("WS"), 1, 4_096, 6_000)]
        );
        tally.clear();
        assert!(tally.ops(0).is_empty());
    }

    #[test]
    fn from_the_moment_of_queueing_if_that_is_asked_for() {
        let mut tally = tally(None, &[None]);
        tally.question.queued = true;
        tally.add(&io("R", 0, 512, "dd"));
        let ops = tally.ops(0);
        assert_eq!((ops[0].total.sum(), ops[0].disk.sum()), (9_000, 6_000));
    }

    #[test]
    fn a_partition_has_what_begins_in_it() {
        let mut tally = tally(None, &[Some(0..8), Some(8..16)]);
        for sector in [0, 7, 8, 16] {
            tally.add(&io("R", sector, 512, "dd"));
        }
        assert_eq!(
            (tally.ops(0)[0].completed, tally.ops(1)[0].completed),
            (2, 1)
        );
    }

    #[test]
    fn what_is_too_much_to_be_told_apart_is_other() {
        let mut tally = tally(Some(By::Process), &[None]);
        let more = KEYS_MAX + 100;
        for at in 0..more {
            tally.add(&io("R", 0, 512, &format!("p{at}")));
        }
        let ops = tally.ops(0);
        assert!(ops.len() <= KEYS_MAX + 1);
        let all: u64 = ops.iter().map(|op| op.completed).sum();
        assert_eq!(all, more as u64);
        let other = ops.iter().find(|op| op.by.as_deref() == Some("other"));
        assert_eq!(other.map(|op| op.completed), Some(100));
    }

    #[test]
    fn who_asked_is_named_or_unknown() {
        let mut tally = tally(Some(By::Process), &[None]);
        tally.add(&io("W", 0, 512, "kworker/u8:3"));
        tally.add(&Io {
            submitter: None,
            ..io("W", 0, 512, "")
        });
        tally.add(&Io {
            submitter: None,
            ..io("FF", 0, 0, "")
        });
        let ops = tally.ops(0);
        let mut names: Vec<_> = ops.iter().filter_map(|op| op.by.as_deref()).collect();
        names.sort_unstable();
        assert_eq!(names, ["flush", "unknown", "write-back"]);
    }
}
