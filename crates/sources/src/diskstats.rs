//! The counters that the kernel always keeps for its block devices: `/proc/diskstats`.
//!
//! Source: the kernel's Documentation/admin-guide/iostats.rst. Times are whole milliseconds in 32 bits, and
//! wrap around. If a new device takes the number of an earlier device, its counters begin at zero.

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use anyhow::Context;
use dashpot_engine::Op;
use dashpot_observe::{Counts, DeviceInterval, InFlight, Kind, OpInterval};
use dashpot_probe::Number;

/// The counters of a device since the kernel made it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) reads: Transfers,
    pub(crate) writes: Transfers,
    pub(crate) discards: Transfers,
    /// For flushes, the kernel counts neither bytes nor merges.
    pub(crate) flushes: Transfers,
    /// The present number of I/Os in flight.
    pub(crate) in_flight: u64,
    /// Time during which at least one I/O was in flight.
    pub(crate) busy_ms: u32,
    /// The integral of the number of I/Os in flight, in I/O-milliseconds.
    pub(crate) depth_time_ms: u32,
}

/// The counters of one kind of I/O.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transfers {
    pub(crate) completed: u64,
    /// How many I/Os the kernel merged into others before it issued them.
    pub(crate) merged: u64,
    /// Sectors of 512 bytes.
    pub(crate) sectors: u64,
    /// The sum of the latencies.
    pub(crate) time_ms: u32,
}

/// The counters of every device, by the number of the device.
pub(crate) fn counters() -> anyhow::Result<HashMap<Number, Counters>> {
    let text = fs::read_to_string(FILE).context(FILE)?;
    Ok(text.lines().filter_map(parse).collect())
}

/// Parses a line: the number, the name, and 11 to 17 figures, depending on the kernel.
fn parse(line: &str) -> Option<(Number, Counters)> {
    let mut words = line.split_ascii_whitespace();
    let major = words.next()?.parse().ok()?;
    let minor = words.next()?.parse().ok()?;
    let figures: Vec<u64> = words.skip(1).map_while(|word| word.parse().ok()).collect();
    let figure = |at: usize| figures.get(at).copied().unwrap_or_default();
    let transfers = |at| Transfers {
        completed: figure(at),
        merged: figure(at + 1),
        sectors: figure(at + 2),
        time_ms: figure(at + 3) as u32,
    };
    let counters = Counters {
        reads: transfers(0),
        writes: transfers(4),
        in_flight: figure(8),
        busy_ms: figure(9) as u32,
        depth_time_ms: figure(10) as u32,
        discards: transfers(11),
        flushes: Transfers {
            completed: figure(15),
            time_ms: figure(16) as u32,
            ..Transfers::default()
        },
    };
    Some((Number { major, minor }, counters))
}

impl Counters {
    /// The difference from earlier counters. If the earlier counters belong to a device that this one has
    /// replaced, nothing is subtracted.
    pub(crate) fn since(&self, earlier: &Counters) -> Counters {
        let kinds = [
            (&self.reads, &earlier.reads),
            (&self.writes, &earlier.writes),
            (&self.discards, &earlier.discards),
            (&self.flushes, &earlier.flushes),
        ];
        if kinds
            .iter()
            .any(|(later, earlier)| later.is_before(earlier))
        {
            return *self;
        }
        let [reads, writes, discards, flushes] = kinds.map(|(later, earlier)| later.since(earlier));
        Counters {
            reads,
            writes,
            discards,
            flushes,
            in_flight: self.in_flight,
            busy_ms: self.busy_ms.wrapping_sub(earlier.busy_ms),
            depth_time_ms: self.depth_time_ms.wrapping_sub(earlier.depth_time_ms),
        }
    }

    /// Whether the device has ever had any I/O.
    pub(crate) fn is_used(&self) -> bool {
        let kinds = [self.reads, self.writes, self.discards, self.flushes];
        kinds.iter().any(|kind| kind.completed > 0)
    }
}

impl Counters {
    /// These counters in the form of a device's interval. The kernel keeps only the sums of latencies.
    pub(crate) fn interval(&self, device: &str, elapsed: Duration) -> DeviceInterval {
        DeviceInterval {
            device: device.to_owned(),
            elapsed,
            ops: vec![
                self.reads.op(Op::Read),
                self.writes.op(Op::Write),
                self.discards.op(Op::Trim),
                self.flushes.op(Op::Flush),
            ],
            // The kernel adds up ticks of its clock, and a short interval may end before its last tick does.
            busy: Duration::from_millis(self.busy_ms.into()).min(elapsed),
            depth_time_ns: u128::from(self.depth_time_ms) * NS_PER_MS,
            depths: None,
            in_flight: InFlight {
                zios: Some(self.in_flight),
                ..InFlight::default()
            },
        }
    }
}

impl Transfers {
    fn op(&self, op: Op) -> OpInterval {
        let counts = Counts {
            completed: self.completed,
            bytes: self.sectors * SECTOR,
            merged: self.merged,
            ..Counts::default()
        };
        OpInterval {
            time_ns: u128::from(self.time_ms) * NS_PER_MS,
            ..OpInterval::of(Kind::Op(op), None, counts)
        }
    }

    fn is_before(&self, earlier: &Transfers) -> bool {
        self.completed < earlier.completed
            || self.merged < earlier.merged
            || self.sectors < earlier.sectors
    }

    fn since(&self, earlier: &Transfers) -> Transfers {
        Transfers {
            completed: self.completed - earlier.completed,
            merged: self.merged - earlier.merged,
            sectors: self.sectors - earlier.sectors,
            time_ms: self.time_ms.wrapping_sub(earlier.time_ms),
        }
    }
}

const FILE: &str = "/proc/diskstats";
/// The unit of lengths, in bytes.
const SECTOR: u64 = 512;
const NS_PER_MS: u128 = 1_000_000;

#[cfg(test)]
mod tests {
    use dashpot_probe::Number;

    use super::{Counters, Transfers, parse};

    #[test]
    fn a_line_has_as_many_figures_as_its_kernel_is_new() {
        let line = " 254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
        let (number, all) = parse(line).unwrap();
        assert_eq!((number.major, number.minor), (254, 0));
        let transfers = |completed, merged, sectors, time_ms| Transfers {
            completed,
            merged,
            sectors,
            time_ms,
        };
        assert_eq!(all.reads, transfers(1, 2, 3, 4));
        assert_eq!(all.writes, transfers(5, 6, 7, 8));
        assert_eq!((all.in_flight, all.busy_ms, all.depth_time_ms), (9, 10, 11));
        assert_eq!(all.discards, transfers(12, 13, 14, 15));
        assert_eq!(all.flushes, transfers(16, 0, 0, 17));
        let (_, old) = parse("8 16 sdb 1 2 3 4 5 6 7 8 9 10 11").unwrap();
        assert_eq!(
            (old.writes, old.discards),
            (all.writes, Transfers::default())
        );
        assert_eq!(parse("no line"), None);
        assert_eq!(
            number,
            Number {
                major: 254,
                minor: 0
            }
        );
    }

    fn reads(completed: u64, time_ms: u32) -> Counters {
        Counters {
            reads: Transfers {
                completed,
                time_ms,
                ..Transfers::default()
            },
            busy_ms: time_ms,
            ..Counters::default()
        }
    }

    #[test]
    fn an_interval_is_the_difference_and_its_times_may_wrap() {
        let since = reads(12, 5).since(&reads(10, u32::MAX - 4));
        assert_eq!((since.reads.completed, since.reads.time_ms), (2, 10));
        assert_eq!(since.busy_ms, 10);
    }

    #[test]
    fn what_counts_less_than_before_is_another_device() {
        assert_eq!(reads(3, 7).since(&reads(10, 5)), reads(3, 7));
    }
}
