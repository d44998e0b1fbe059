//! A tally of the kernel's finished I/Os, with their devices, and the processes or control groups
//! that asked for them.

use dashpot_engine::Op;
use dashpot_observe::{By, Kind, OpInterval, Part, Question, Sample, Tally};
use dashpot_probe::{Cgroups, Device, Io};

use super::rwbs::Letters;

/// The counts of an interval so far.
pub(super) struct KernelTally {
    devices: Vec<Device>,
    by: Option<By>,
    queued: bool,
    cgroups: Cgroups,
    tally: Tally<Letters>,
}

impl KernelTally {
    pub(super) fn new(devices: &[Device], question: &Question) -> KernelTally {
        KernelTally {
            devices: devices.to_vec(),
            by: question.by,
            queued: question.queued,
            cgroups: Cgroups::default(),
            tally: Tally::default(),
        }
    }

    /// Counts an I/O, if it belongs to one of the devices.
    pub(super) fn add(&mut self, io: &Io) {
        let mut devices = self.devices.iter();
        let Some(device) = devices.position(|device| device.has(io.device, io.sector)) else {
            return;
        };
        let begun_ns = io.queued_ns.unwrap_or(io.issued_ns);
        let sample = Sample {
            device,
            of: Letters(io.rwbs),
            bytes: io.bytes,
            disk_ns: io.completed_ns.saturating_sub(io.issued_ns),
            total_ns: self
                .queued
                .then(|| io.completed_ns.saturating_sub(begun_ns)),
            store_ns: None,
        };
        let name;
        let part = match (self.by, &io.submitter) {
            (None | Some(By::Client), _) => Part::All,
            (Some(By::Size), _) => Part::Size(io.bytes),
            // The kernel may make one flush for several processes.
            (_, None) if Kind::of_letters(io.rwbs.bytes()) == Kind::Op(Op::Flush) => {
                Part::Named(FLUSH)
            }
            (_, None) => Part::Named(UNKNOWN),
            (Some(By::Process), Some(submitter)) => {
                name = submitter.name(io.rwbs);
                Part::Named(&name)
            }
            (Some(By::Cgroup), Some(submitter)) => Part::Named(self.cgroups.of(submitter, io.rwbs)),
        };
        self.tally.add(&sample, part);
    }

    /// The I/O of a device, by type and value.
    pub(super) fn ops(&self, device: usize) -> Vec<OpInterval> {
        self.tally.ops(device)
    }

    /// Begins the next interval.
    pub(super) fn clear(&mut self) {
        self.tally.clear();
    }
}

/// The name for flushes of the kernel's own.
const FLUSH: &str = "flush";
/// The name for I/O whose submitter was not seen.
const UNKNOWN: &str = "unknown";

#[cfg(test)]
mod tests {
    use super::*;
    use dashpot_probe::{Comm, Layer, Number, Rwbs, Submitter};

    const DISK: Number = Number { major: 7, minor: 1 };

    fn tally(question: &Question, parts: &[Option<std::ops::Range<u64>>]) -> KernelTally {
        let device = |(at, part): (usize, &Option<std::ops::Range<u64>>)| Device {
            name: format!("d{at}"),
            number: DISK,
            disk: DISK,
            part: part.clone(),
            layer: Layer::Request,
        };
        let devices: Vec<Device> = parts.iter().enumerate().map(device).collect();
        KernelTally::new(&devices, question)
    }

    fn question() -> Question {
        Question::latencies(&[dashpot_observe::Layer::Disk])
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
    fn types_are_apart_and_add_up() {
        let mut tally = tally(&question(), &[None]);
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
    }

    #[test]
    fn from_the_moment_of_queueing_if_that_is_asked_for() {
        let queued = Question {
            queued: true,
            ..question()
        };
        let mut tally = tally(&queued, &[None]);
        tally.add(&io("R", 0, 512, "dd"));
        let ops = tally.ops(0);
        assert_eq!((ops[0].total.sum(), ops[0].disk.sum()), (9_000, 6_000));
    }

    #[test]
    fn a_partition_has_what_begins_in_it() {
        let mut tally = tally(&question(), &[Some(0..8), Some(8..16)]);
        for sector in [0, 7, 8, 16] {
            tally.add(&io("R", sector, 512, "dd"));
        }
        assert_eq!(
            (tally.ops(0)[0].completed, tally.ops(1)[0].completed),
            (2, 1)
        );
    }

    #[test]
    fn a_submitter_is_named_or_unknown() {
        let by_process = Question {
            by: Some(By::Process),
            ..question()
        };
        let mut tally = tally(&by_process, &[None]);
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
