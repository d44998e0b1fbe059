//! The kernel's I/Os as records, with the names of their devices, types, processes, threads and cgroups.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use dashpot_engine::{Op, OpSet};
use dashpot_observe::{FinishedIo, IoWaits, Kind, Layer, Thread, Who};
use dashpot_probe::{Comm, InFlight, Io, Rwbs, Submitter};

use crate::errno::errno_name;

/// Makes records. Records share the strings of names, because many records have the same few names.
pub(crate) struct KernelIos {
    letters: Known<Rwbs>,
    names: Known<Comm>,
}

/// Maps each name, in the form that it has in the kernel's events, to its string.
struct Known<K>(HashMap<K, Arc<str>>);

impl KernelIos {
    pub(crate) fn new() -> KernelIos {
        KernelIos {
            letters: Known(HashMap::new()),
            names: Known(HashMap::new()),
        }
    }

    /// The record of an I/O of the device with this name.
    pub(crate) fn finished(&mut self, device: &Arc<str>, io: &Io) -> FinishedIo {
        let letters = io.rwbs.bytes();
        let queue_ns = |queued_ns| io.issued_ns.saturating_sub(queued_ns);
        FinishedIo {
            fua: ops_of(letters).contains(OpSet::FUA),
            letters: Some(self.letters.text(io.rwbs, ToString::to_string)),
            offset_bytes: io.sector.saturating_mul(SECTOR),
            length_bytes: io.bytes,
            begun_ns: io.begun_ns(),
            ended_ns: io.completed_ns,
            at_ns: io.completed_ns,
            waits: IoWaits::Kernel {
                queue_ns: io.queued_ns.map(queue_ns),
                device_ns: io.completed_ns.saturating_sub(io.issued_ns),
            },
            who: io.submitter.as_ref().map(|submitter| self.who(submitter)),
            merged: io.merged,
            requeued: io.requeued,
            error: (io.error != 0).then(|| errno_name(io.error)),
            ..FinishedIo::bare(Layer::Disk, Arc::clone(device), Kind::of_letters(letters))
        }
    }

    /// The record of an I/O in flight, as if it ended at this moment.
    pub(crate) fn in_flight(
        &mut self,
        device: &Arc<str>,
        io: &InFlight,
        now_ns: u64,
    ) -> FinishedIo {
        let io = Io {
            device: io.device,
            rwbs: io.rwbs,
            sector: io.sector,
            bytes: io.bytes,
            queued_ns: Some(io.since_ns),
            issued_ns: io.since_ns,
            completed_ns: now_ns.max(io.since_ns),
            error: 0,
            merged: 0,
            requeued: 0,
            submitter: io.submitter.clone(),
        };
        self.finished(device, &io)
    }

    fn who(&mut self, submitter: &Submitter) -> Who {
        let mut name = |name| self.names.text(name, ToString::to_string);
        let Submitter { tid, thread, owner } = submitter;
        Who::Thread(Thread {
            process: owner.process.and_then(|own| own.name).map(&mut name),
            pid: owner.process.map(|own| own.pid),
            thread: Some(name(*thread)),
            tid: Some(*tid),
            cgroup: owner.cgroup.clone(),
        })
    }
}

impl<K: Copy + Eq + Hash> Known<K> {
    fn text(&mut self, key: K, text: fn(&K) -> String) -> Arc<str> {
        if self.0.len() >= KNOWN_MAX && !self.0.contains_key(&key) {
            self.0.clear();
        }
        Arc::clone(self.0.entry(key).or_insert_with(|| text(&key).into()))
    }
}

/// dashpot's operations for the kernel's letters. An `F` after the operation is FUA. Most kernels use `N`
/// both for writing zeroes and for drivers' own requests.
pub(crate) fn ops_of(rwbs: &[u8]) -> OpSet {
    let op = match (rwbs, Kind::of_letters(rwbs)) {
        ([b'N', ..], _) => Some(Op::Zero),
        (_, Kind::Op(op)) => Some(op),
        (_, Kind::Other) => None,
    };
    let has_fua = rwbs
        .iter()
        .skip_while(|letter| **letter == b'F')
        .any(|letter| *letter == b'F');
    op.map_or(OpSet::EMPTY, OpSet::of)
        .union(if has_fua { OpSet::FUA } else { OpSet::EMPTY })
}

/// The unit in which the kernel counts offsets.
const SECTOR: u64 = 512;
/// The maximum number of strings of each kind that are remembered.
const KNOWN_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use dashpot_probe::{Number, Owner, Process};

    use super::*;

    const DISK: Number = Number { major: 7, minor: 1 };

    fn finished(io: &Io) -> FinishedIo {
        KernelIos::new().finished(&"d0".into(), io)
    }

    fn io(rwbs: &str, sector: u64) -> Io {
        Io {
            device: DISK,
            rwbs: Rwbs::new(rwbs.as_bytes()),
            sector,
            bytes: 512,
            queued_ns: Some(1_000),
            issued_ns: 4_000,
            completed_ns: 10_000,
            error: 0,
            merged: 0,
            requeued: 0,
            submitter: Some(Submitter {
                tid: i32::MAX,
                thread: Comm::new(b"io-1"),
                owner: Owner {
                    process: Some(Process {
                        pid: 7,
                        name: Some(Comm::new(b"dd")),
                    }),
                    cgroup: Some("/a".into()),
                },
            }),
        }
    }

    #[test]
    fn a_record_has_the_times_of_its_events() {
        let record = finished(&io("WS", 8));
        assert_eq!((record.total_ns(), record.at_device_ns()), (9_000, 6_000));
        assert_eq!(
            (record.offset_bytes, record.letters.as_deref()),
            (4_096, Some("WS"))
        );
        let who = record.who.expect("a thread");
        let expected = Thread {
            process: Some("dd".into()),
            pid: Some(7),
            thread: Some("io-1".into()),
            tid: Some(i32::MAX),
            cgroup: Some("/a".into()),
        };
        assert_eq!(who, Who::Thread(expected));
        let unqueued = Io {
            queued_ns: None,
            ..io("R", 0)
        };
        let record = finished(&unqueued);
        assert_eq!((record.total_ns(), record.at_device_ns()), (6_000, 6_000));
    }

    #[test]
    fn letters_are_operations() {
        let write = OpSet::of(Op::Write);
        for (rwbs, ops) in [
            ("R", OpSet::of(Op::Read)),
            ("RA", OpSet::of(Op::Read)),
            ("WS", write),
            ("WFS", write.union(OpSet::FUA)),
            ("FW", write),
            ("FWFS", write.union(OpSet::FUA)),
            ("F", OpSet::of(Op::Flush)),
            ("FF", OpSet::of(Op::Flush)),
            ("D", OpSet::of(Op::Trim)),
            ("N", OpSet::of(Op::Zero)),
        ] {
            assert_eq!(ops_of(rwbs.as_bytes()), ops, "{rwbs}");
        }
    }
}
