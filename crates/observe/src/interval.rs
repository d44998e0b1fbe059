//! The I/O of devices in an interval, from any source.

use std::time::Duration;

use dashpot_engine::DepthTimes;
use dashpot_engine::histogram::Histogram;

use super::counts::Counts;
use super::in_flight::InFlight;
use super::kind::Kind;

/// The I/O of a device in an interval.
pub struct DeviceInterval {
    /// The device's name. The device is a disk or volume of dashpot, or one of the kernel's disks.
    pub device: String,
    /// The length of the interval.
    pub elapsed: Duration,
    /// The I/O of each operation, or of each operation and value of a breakdown.
    pub ops: Vec<OpInterval>,
    /// How long at least one I/O was in flight.
    pub busy: Duration,
    /// The integral of the number of I/Os in flight, in I/O-nanoseconds.
    pub depth_time_ns: u128,
    /// How long the device had each number of I/Os in flight. `None` for the kernel's disks, because the
    /// kernel does not count this time.
    pub depths: Option<DepthTimes>,
    /// The I/Os in flight at the interval's end.
    pub in_flight: InFlight,
}

/// The I/O of one operation of a device; in a breakdown, the I/O of one value.
#[derive(Clone)]
pub struct OpInterval {
    /// The operation.
    pub kind: Kind,
    /// The kernel's letters for the operation, for the kernel's disks.
    pub rwbs: Option<String>,
    /// In a breakdown, the value, such as a client, a process or a size. `other` stands for all values beyond
    /// the maximum number of values.
    pub by: Option<String>,
    /// The I/Os that ended in the interval.
    pub counts: Counts,
    /// The sum of the latencies at the disk, in nanoseconds. A source can know it without each latency.
    pub time_ns: u128,
}

impl DeviceInterval {
    /// Appends the next interval, and takes over the I/Os in flight at the end of that interval. A breakdown
    /// distinguishes at most `room` new values. All other new values become `other`.
    pub fn go_on(&mut self, next: DeviceInterval, mut room: usize) {
        self.elapsed += next.elapsed;
        self.busy += next.busy;
        self.depth_time_ns += next.depth_time_ns;
        match (&mut self.depths, &next.depths) {
            (Some(depths), Some(next)) => depths.merge(next),
            _ => self.depths = None,
        }
        self.in_flight = next.in_flight;
        for mut op in next.ops {
            let is_new = !self.ops.iter().any(|known| known.is_like(&op));
            if is_new && room == 0 && op.by.is_some() {
                op.by = Some(OTHER.to_owned());
            }
            room -= usize::from(is_new && room > 0);
            self.add(op);
        }
    }

    /// Adds the I/O of an operation to the I/O of the same operation so far.
    pub fn add(&mut self, op: OpInterval) {
        match self.ops.iter_mut().find(|known| known.is_like(&op)) {
            Some(known) => {
                known.counts.merge(&op.counts);
                known.time_ns += op.time_ns;
            }
            None => self.ops.push(op),
        }
    }

    /// The latencies at the disk of all operations.
    pub fn latencies(&self) -> Histogram {
        let mut latencies = Histogram::default();
        let each = self.ops.iter().filter_map(|op| op.counts.disk.as_deref());
        each.for_each(|disk| latencies.merge(disk));
        latencies
    }
}

impl OpInterval {
    /// The I/O of an operation, or of one value of a breakdown.
    pub fn of(kind: Kind, by: Option<String>, counts: Counts) -> OpInterval {
        OpInterval {
            kind,
            rwbs: None,
            by,
            time_ns: counts.disk.as_ref().map_or(0, |disk| disk.sum()),
            counts,
        }
    }

    fn is_like(&self, other: &OpInterval) -> bool {
        (&self.kind, &self.rwbs, &self.by) == (&other.kind, &other.rwbs, &other.by)
    }
}

/// The number of I/Os in flight on several devices, if it is known for all of them, and the oldest I/O.
pub fn in_flight_of_all<'a>(intervals: impl IntoIterator<Item = &'a DeviceInterval>) -> InFlight {
    let each = intervals.into_iter().map(|interval| &interval.in_flight);
    let each: Vec<&InFlight> = each.collect();
    let zios = each.iter().map(|in_flight| in_flight.zios).sum();
    let oldest = match zios {
        Some(_) => each.into_iter().max_by_key(|in_flight| in_flight.oldest_ns),
        // The device of which the number is not known says why.
        None => each.into_iter().find(|in_flight| in_flight.zios.is_none()),
    };
    InFlight {
        zios,
        ..oldest.cloned().unwrap_or_default()
    }
}

/// The length of an interval that covers several devices. The source reads the devices one after another, so
/// the lengths for the devices differ a little, and the longest counts.
pub fn elapsed_of_all<'a>(intervals: impl IntoIterator<Item = &'a DeviceInterval>) -> Duration {
    let each = intervals.into_iter().map(|interval| interval.elapsed);
    each.max().unwrap_or_default()
}

/// The value that stands for all values that are not distinguished.
pub const OTHER: &str = "other";

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(ops: &[(&str, &str, u64)], in_flight: u64) -> DeviceInterval {
        let op = |&(op, by, completed): &(&str, &str, u64)| {
            let counts = Counts {
                completed,
                bytes: completed * 512,
                disk: Some(Box::new(Histogram::of(1_000, completed))),
                ..Counts::default()
            };
            OpInterval::of(Kind::of_word(op), Some(by.to_owned()), counts)
        };
        DeviceInterval {
            device: "d".to_owned(),
            elapsed: Duration::from_secs(1),
            ops: ops.iter().map(op).collect(),
            busy: Duration::from_millis(5),
            depth_time_ns: 7,
            depths: Some(DepthTimes::from_iter([(
                2,
                dashpot_engine::Duration::from_nanos(3),
            )])),
            in_flight: InFlight {
                zios: Some(in_flight),
                ..InFlight::default()
            },
        }
    }

    #[test]
    fn intervals_that_follow_each_other_are_one() {
        let mut sum = interval(&[("read", "dd", 3), ("write", "dd", 1)], 9);
        sum.go_on(interval(&[("read", "fio", 5), ("read", "dd", 4)], 2), 9);
        let ops = sum.ops.iter();
        let ops = ops.map(|op| (op.kind.word(), op.by.as_deref(), op.counts.bytes));
        let expected = [
            ("read", Some("dd"), 7 * 512),
            ("write", Some("dd"), 512),
            ("read", Some("fio"), 5 * 512),
        ];
        assert_eq!(ops.collect::<Vec<_>>(), expected);
        assert_eq!(sum.latencies(), Histogram::of(1_000, 13));
        assert_eq!((sum.elapsed.as_secs(), sum.busy.as_millis()), (2, 10));
        assert_eq!((sum.depth_time_ns, sum.in_flight.zios), (14, Some(2)));
    }

    #[test]
    fn what_there_is_no_room_for_is_other_and_counted() {
        let mut sum = interval(&[("read", "dd", 3)], 0);
        for at in 0..100_u64 {
            let name = format!("p{at}");
            let room = 4_usize.saturating_sub(sum.ops.len());
            sum.go_on(interval(&[("read", &name, 1), ("read", "dd", 1)], 0), room);
        }
        let by = |name: &str| {
            let mut ops = sum.ops.iter();
            let op = ops.find(|op| op.by.as_deref() == Some(name));
            op.map_or(0, |op| op.counts.completed)
        };
        assert_eq!(sum.ops.len(), 5);
        assert_eq!((by("dd"), by("p2"), by("other")), (103, 1, 97));
    }
}
