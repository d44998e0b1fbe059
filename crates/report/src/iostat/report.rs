//! `iostat` as a [`Report`]: the figures of each disk.

use dashpot_api::Depth;
use dashpot_engine::{DepthTimes, Op};
use dashpot_observe::{DeviceInterval, Layer, Question, Schedule, Seen, Subject};
use dashpot_text::surface::Surface;

use super::{Columns, Completed, Interval, Iostat};
use crate::report::{Pages, Report, Tells};

/// The report: averages of disks over intervals. If the schedule says so, an additional first interval covers
/// the time since the devices' start.
#[derive(Clone, Debug)]
pub struct IostatReport {
    /// The layer: disks or volumes.
    pub layer: Layer,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// The columns that the report shows.
    pub columns: Columns,
    /// Whether even a narrow terminal gets all columns.
    pub wide: bool,
}

impl Report for IostatReport {
    fn question(&self) -> Question {
        Question::of(Subject::Averages(self.layer))
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn tells(&self) -> Tells {
        Tells::LENGTH
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        vec![Box::new(Iostat {
            columns: self.columns,
            disks: seen.at(self.layer).iter().map(disk).collect(),
            mention: seen.mention(),
            length: seen.length(),
            is_since_start: self.schedule.since_start && seen.length().asked.is_none(),
            room: surface.room(self.wide),
        })]
    }
}

/// As in the kernel's statistics, writing zeroes counts as writing, and a trim is a discard.
fn disk(interval: &DeviceInterval) -> Interval {
    Interval {
        disk: interval.device.clone(),
        elapsed: interval.elapsed,
        reads: completed(interval, &[Op::Read]),
        writes: completed(interval, &[Op::Write, Op::Zero]),
        discards: completed(interval, &[Op::Trim]),
        flushes: completed(interval, &[Op::Flush, Op::Sync]),
        depth_time: interval.depth_time_ns,
        busy: interval.busy,
        depth: interval
            .depths
            .as_ref()
            .map(DepthTimes::summary)
            .map(Depth::of),
        in_flight: interval.in_flight.clone(),
    }
}

fn completed(interval: &DeviceInterval, ops: &[Op]) -> Completed {
    let mut all = Completed::default();
    for op in interval.ops.iter().filter(|op| op.kind.is_any(ops)) {
        all = all.with(&Completed {
            zios: op.completed,
            bytes: op.bytes,
            time_ns: op.time_ns,
            merged: op.merged,
        });
    }
    all
}
