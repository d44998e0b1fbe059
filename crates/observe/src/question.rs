//! A report's question to a source.

use dashpot_engine::{Duration, OpSet};

use super::dimension::Dimension;
use super::finished::FinishedIo;
use super::intervals::Intervals;
use super::kind::Kind;
use super::layer::Layer;
use super::predicate::Predicates;
use super::value::Unit;

/// The subject of a report, and its breakdown. Even without a breakdown, a source distinguishes devices and
/// the operations of I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The devices or pools that the report is about.
    pub subject: Subject,
    /// The conditions that I/Os must meet to count. If the question is about single I/Os, the source gives
    /// only those that meet the conditions.
    pub predicates: Predicates,
    /// The breakdown of each operation.
    pub by: Option<Dimension>,
    /// The dimension whose distribution is needed in addition to that of latencies.
    pub measure: Option<Dimension>,
    /// Whether counts and bytes are enough. In that case, a source may leave the latencies out.
    pub counts_only: bool,
    /// Whether latencies from arrival are needed. On the kernel's disks, these latencies need more events.
    pub queued: bool,
    /// The stretch of the past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
}

/// The facts about single I/Os that a question needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Names, such as those of the I/Os' devices and processes, and the number of bytes that each I/O moved.
    Names,
    /// The names, the bytes, and the times at the device.
    Latencies,
    /// More facts than those of [`Needs::Latencies`].
    All,
}

/// The subject of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Devices at these layers, with their latencies.
    Latencies(Vec<Layer>),
    /// Devices at a layer, with counts and sums only. The kernel has these figures even if no probe watches
    /// its disks.
    Averages(Layer),
    Pools,
    /// Finished I/Os, one by one. The source gives I/Os as soon as it can, which may be several times in one
    /// interval of the schedule.
    Ios(Wanted),
}

/// A stretch of time up to now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Past {
    /// The length of the stretch.
    pub last: Duration,
    /// Whether each second is an interval. Otherwise the whole stretch is one interval.
    pub each_second: bool,
}

/// The intervals of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The length of an interval; [`Duration::MAX`] lasts until the source ends.
    pub interval: Duration,
    /// The number of intervals; `None` if they follow until the source ends.
    pub count: Option<u64>,
    /// Whether an additional interval comes first, from the devices' start until now.
    pub since_start: bool,
}

/// The kind of finished I/Os that a report takes one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// The layer of the devices.
    pub layer: Layer,
    /// The operations; `None` for all operations.
    pub ops: Option<OpSet>,
    /// The least time from an I/O's beginning to its end, in nanoseconds.
    pub min_ns: u64,
    /// The watch ends after this many I/Os; `None` if only the schedule ends the watch.
    pub count: Option<u64>,
}

impl Question {
    /// A question about devices at these layers.
    pub fn latencies(layers: &[Layer]) -> Question {
        Question::of(Subject::Latencies(layers.to_vec()))
    }

    /// A question about a subject, without a breakdown.
    pub fn of(subject: Subject) -> Question {
        Question {
            subject,
            predicates: Predicates::default(),
            by: None,
            measure: None,
            counts_only: false,
            queued: false,
            past: None,
        }
    }

    /// The layers of the subject.
    pub fn layers(&self) -> &[Layer] {
        match &self.subject {
            Subject::Latencies(layers) => layers,
            Subject::Averages(layer) | Subject::Ios(Wanted { layer, .. }) => {
                std::slice::from_ref(layer)
            }
            Subject::Pools => &[],
        }
    }

    /// Whether the source must know who asked for an I/O.
    pub fn has_who(&self) -> bool {
        self.dimensions().any(Dimension::is_who)
    }

    /// The facts about I/Os that the question asks for, in addition to the facts that every source has.
    pub fn dimensions(&self) -> impl Iterator<Item = Dimension> {
        let own = [self.by, self.measure].into_iter().flatten();
        own.chain(self.predicates.dimensions())
    }

    /// The facts about single I/Os that the question needs from a source. A condition on `latency` needs no
    /// further facts, because the source itself must leave out the I/Os that do not meet it.
    pub fn needs(&self) -> Needs {
        let own = self
            .by
            .into_iter()
            .chain(self.predicates.beside_latencies());
        let has_names_only = own.into_iter().all(|one| one.unit() == Unit::Name);
        let measures_latency = matches!(self.measure, None | Some(Dimension::Latency));
        let has_parts = self.queued || self.has_store() || !measures_latency || self.has_averages();
        match (has_names_only && !has_parts, self.counts_only) {
            (true, true) if self.measure.is_none() => Needs::Names,
            (true, _) => Needs::Latencies,
            (false, _) => Needs::All,
        }
    }

    /// Whether counters of operations suffice, because the question has no breakdown and no condition.
    pub fn is_plain(&self) -> bool {
        self.dimensions().next().is_none()
    }

    /// Whether the question asks only how many I/Os failed, not with which errors.
    pub fn counts_failed(&self) -> bool {
        self.counts_only && self.predicates.ask_for_any(Dimension::Error)
    }

    /// Whether the question asks for averages, merges, and busy times of devices.
    pub fn has_averages(&self) -> bool {
        matches!(self.subject, Subject::Averages(_))
    }

    /// Whether the question needs latencies of stores, which only events show.
    pub fn has_store(&self) -> bool {
        self.layers().contains(&Layer::Store)
    }
}

impl Wanted {
    /// All I/Os of a layer.
    pub fn all(layer: Layer) -> Wanted {
        Wanted {
            layer,
            ops: None,
            min_ns: 0,
            count: None,
        }
    }

    /// Whether an I/O has the layer and one of the operations, and took long enough.
    pub fn takes(&self, io: &FinishedIo) -> bool {
        let is_op = |ops: OpSet| {
            let is_kind = matches!(io.kind, Kind::Op(op) if ops.means(OpSet::of(op)));
            is_kind || (io.fua && ops.contains(OpSet::FUA))
        };
        self.layer == io.layer && io.total_ns() >= self.min_ns && self.ops.is_none_or(is_op)
    }
}

impl Schedule {
    /// Intervals of this length: `count` intervals, or endlessly many.
    pub fn every(interval: Duration, count: Option<u64>) -> Schedule {
        Schedule {
            interval,
            count,
            since_start: false,
        }
    }

    /// The intervals of the schedule. The first begins at `start_ns`.
    pub fn begin(&self, start_ns: u64) -> Intervals {
        Intervals::new(start_ns, self.interval.as_nanos(), self.count)
    }

    /// A schedule of one interval.
    pub fn once(interval: Duration) -> Schedule {
        Schedule::every(interval, Some(1))
    }
}
