//! Finished I/Os of the kernel's disks, counted by device, type and what they are broken down by.

use std::collections::HashMap;

use dashpot_engine::histogram::Histogram;
use dashpot_probe::{Comm, Device, Io, Rwbs, Submitter};

use super::cgroups::Cgroups;
use super::interval::OpInterval;
use super::question::{By, Question};
use crate::report::size::{size_class, size_name};

/// What an interval has counted so far.
pub(super) struct Tally {
    devices: Vec<Device>,
    question: Question,
    counted: HashMap<Key, Counted>,
    cgroups: Cgroups,
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
    Process(Comm),
    /// A place among the names of control groups.
    Cgroup(usize),
    /// Pages that the kernel has written by itself, some time after whoever made them dirty.
    WriteBack,
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
            counted: HashMap::new(),
            cgroups: Cgroups::default(),
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
        match (self.question.by, io.submitter) {
            (None | Some(By::Client), _) => Value::All,
            (Some(By::Size), _) => Value::Size(size_class(io.bytes)),
            (_, None) => Value::Unknown,
            (_, Some(submitter)) if is_write_back(&submitter, io.rwbs) => Value::WriteBack,
            (Some(By::Process), Some(submitter)) => Value::Process(submitter.comm),
            (Some(By::Cgroup), Some(submitter)) => self
                .cgroups
                .of(submitter.pid)
                .map_or(Value::Unknown, Value::Cgroup),
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
            Value::Process(comm) => comm.to_string(),
            Value::Cgroup(at) => self.cgroups.name(at).to_owned(),
            Value::WriteBack => "write-back".to_owned(),
            Value::Unknown => "unknown".to_owned(),
            Value::Other => "other".to_owned(),
        })
    }

    /// Begins the next interval.
    pub(super) fn clear(&mut self) {
        self.counted.clear();
        self.cgroups.forget();
    }
}

/// The kernel's workers write pages back; what they read is for others, such as a loop device.
fn is_write_back(submitter: &Submitter, rwbs: Rwbs) -> bool {
    submitter.comm.bytes().starts_with(b"kworker/") && op_word(rwbs.bytes()) == "write"
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
const KEYS_MAX: usize = 2_048;
