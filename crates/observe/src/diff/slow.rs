//! Chooses the slow I/Os, and computes the slow time of each.

use std::collections::HashMap;
use std::ops::Range;

use dashpot_engine::histogram::Histogram;

use crate::finished::FinishedIo;
use crate::kind::Kind;
use crate::predicate::Predicates;

/// The I/Os that count as slow.
#[derive(Debug)]
pub enum Slow {
    /// The I/Os that took longer than usual. Only the time beyond the usual time counts.
    Beyond(Usual),
    /// The I/Os that meet conditions. Their whole time counts.
    Where(Predicates),
    /// The I/Os that meet conditions and ended in this range of time, in nanoseconds of the source's clock.
    /// These are the I/Os in a rectangle of a heat map.
    Inside(Range<u64>, Predicates),
}

/// The usual times of I/Os, by operation.
#[derive(Debug, Default)]
pub struct Usual {
    times: HashMap<Kind, Histogram>,
}

impl Slow {
    /// The slow time of an I/O, in nanoseconds; `None` if it is not slow.
    pub(super) fn slow_ns(&self, io: &FinishedIo) -> Option<u64> {
        match self {
            Slow::Beyond(usual) => {
                let beyond_ns = waited_ns(io).saturating_sub(usual.limit_ns(io.kind)?);
                (beyond_ns > 0).then_some(beyond_ns)
            }
            Slow::Where(predicates) => predicates.select(io).then(|| waited_ns(io)),
            Slow::Inside(ended_ns, predicates) => {
                let is_inside = ended_ns.contains(&io.ended_ns) && predicates.select(io);
                is_inside.then(|| waited_ns(io))
            }
        }
    }
}

impl Usual {
    /// Counts an I/O of the other side, whose I/Os define the usual times.
    pub fn add(&mut self, io: &FinishedIo) {
        self.times.entry(io.kind).or_default().record(waited_ns(io));
    }

    /// The 99th percentile of an operation's times; with too few I/Os, the longest time. `None` if the other
    /// side had no I/O of this operation; then no I/O of the operation counts as slow.
    fn limit_ns(&self, kind: Kind) -> Option<u64> {
        let times = self.times.get(&kind)?;
        match times.count() {
            ENOUGH.. => times.quantile(990_000),
            _ => times.max(),
        }
    }
}

/// The time that an I/O waited, minus dashpot's own error and the time that the I/O's client took.
fn waited_ns(io: &FinishedIo) -> u64 {
    let Some(waits) = io.waits.zio() else {
        return io.total_ns();
    };
    let others = waits.lateness + waits.recv + waits.reply;
    io.total_ns().saturating_sub(others.as_nanos())
}

/// With fewer I/Os than this, the longest time is used instead of the 99th percentile.
const ENOUGH: u64 = 100;
