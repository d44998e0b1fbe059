//! The sums of both sides, by every fact about their I/Os.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use serde::Serialize;

use crate::dimension::{Dimension, Knows};
use crate::facts::Fact;
use crate::finished::FinishedIo;
use crate::kind::Kind;
use crate::parts::{Part, Parts};

use super::beside::Moments;
use super::slow::Slow;

/// One of the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side whose slow I/Os the comparison explains.
    Here,
    /// The other side, with which `Here` is compared.
    There,
}

/// The sums of both sides so far.
#[derive(Debug)]
pub struct Diff {
    slow: Slow,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) waits: Vec<Dimension>,
    parts: Parts,
    pub(super) here: Sums,
    pub(super) there: Sums,
    /// The moments at which slow I/Os were issued here.
    pub(super) slow_moments: Moments,
    /// The moments at which I/Os were issued on the other side, or, without another side, at which other
    /// I/Os were issued here.
    pub(super) usual_moments: Moments,
    /// The ages of I/Os that had been in flight here for a long time. The key of an I/O is its device, its
    /// beginning and its first byte.
    hung: BTreeMap<(Arc<str>, u64, u64), u64>,
}

/// A device's I/Os that had been in flight for a long time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hung {
    pub device: String,
    /// The number of these I/Os.
    pub count: u64,
    /// The age of the oldest of these I/Os.
    pub oldest_ns: u64,
}

/// The sums of a side.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) all: Sum,
    pub(super) of: HashMap<(Dimension, Part), Sum, RandomState>,
    /// The total time of the slow I/Os in each wait, in nanoseconds.
    pub(super) waited_ns: Vec<u128>,
}

/// An amount of I/O.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) time_ns: u128,
    pub(super) slow: u64,
    pub(super) slow_ns: u128,
    pub(super) errors: u64,
}

impl Diff {
    /// An empty comparison of a source's I/Os, by all facts that the source knows and that are not themselves
    /// measures of slowness.
    pub fn new(slow: Slow, knows: Knows) -> Diff {
        let known =
            |dimension: &Dimension| dimension.is_known(knows) && !is_again(*dimension, knows);
        let waits: Vec<Dimension> = match knows {
            Knows::Kernel => KERNEL_WAITS.to_vec(),
            _ => Dimension::WAITS.into_iter().filter(known).collect(),
        };
        let sums = || Sums {
            waited_ns: vec![0; waits.len()],
            ..Sums::default()
        };
        Diff {
            slow,
            dimensions: compared().filter(known).collect(),
            here: sums(),
            there: sums(),
            waits,
            parts: Parts::default(),
            slow_moments: Moments::default(),
            usual_moments: Moments::default(),
            hung: BTreeMap::new(),
        }
    }

    /// Counts an I/O of a side.
    pub fn add(&mut self, side: Side, io: &FinishedIo) {
        let sum = Sum::of(io, self.slow.slow_ns(io));
        match (side, sum.slow > 0) {
            (Side::Here, true) => self.slow_moments.add(io),
            (side, _) if side == self.usual_side() => self.usual_moments.add(io),
            _ => {}
        }
        for at in 0..self.dimensions.len() {
            let by = self.dimensions[at];
            self.reach(by, io);
            let part = self.parts.of(by, io);
            self.side(side).add((by, part), &sum);
        }
        let waits = std::mem::take(&mut self.waits);
        let sums = self.side(side);
        sums.all.merge(&sum);
        if sum.slow > 0 {
            for (waited_ns, wait) in sums.waited_ns.iter_mut().zip(&waits) {
                *waited_ns += u128::from(wait.number(io).unwrap_or(0));
            }
        }
        self.waits = waits;
    }

    /// Looks at an I/O in a second pass, after all I/Os have been counted. The I/O counts once for each
    /// sampled moment at which an I/O of another device was issued while this I/O was in flight.
    pub fn look_beside(&mut self, side: Side, io: &FinishedIo) {
        if side == Side::Here {
            self.slow_moments.look(io, &BESIDE, &mut self.parts);
        }
        if side == self.usual_side() {
            self.usual_moments.look(io, &BESIDE, &mut self.parts);
        }
    }

    /// Counts an I/O that had not ended when the source last saw it on this side.
    pub fn add_in_flight(&mut self, io: &FinishedIo) {
        let age_ns = io.total_ns();
        let key = (Arc::clone(&io.device), io.begun_ns, io.offset_bytes);
        if age_ns >= HUNG_NS && (self.hung.len() < HUNG_MAX || self.hung.contains_key(&key)) {
            let oldest_ns = self.hung.entry(key).or_default();
            *oldest_ns = age_ns.max(*oldest_ns);
        }
    }

    /// The I/Os that had been in flight for a long time, by device.
    pub(super) fn hung(&self) -> Vec<Hung> {
        let mut devices: Vec<Hung> = Vec::new();
        for ((device, ..), age_ns) in &self.hung {
            match devices.last_mut().filter(|last| *last.device == **device) {
                Some(last) => {
                    last.count += 1;
                    last.oldest_ns = last.oldest_ns.max(*age_ns);
                }
                None => devices.push(Hung {
                    device: device.to_string(),
                    count: 1,
                    oldest_ns: *age_ns,
                }),
            }
        }
        devices
    }

    /// The side whose I/Os define what is usual. If conditions select the slow I/Os, the other I/Os of the
    /// same side are the usual ones.
    fn usual_side(&self) -> Side {
        match self.slow {
            Slow::Beyond(_) => Side::There,
            Slow::Where(_) | Slow::Inside(..) => Side::Here,
        }
    }

    fn side(&mut self, side: Side) -> &mut Sums {
        match side {
            Side::Here => &mut self.here,
            Side::There => &mut self.there,
        }
    }

    fn reach(&mut self, by: Dimension, io: &FinishedIo) {
        let doublings = self.parts.reach(by, io);
        if doublings > 0 {
            self.here.merge_ranges(by, doublings);
            self.there.merge_ranges(by, doublings);
        }
    }

    /// Whether any I/O has a value of this dimension.
    pub(super) fn has_values(&self, dimension: Dimension) -> bool {
        let mut keys = self.here.of.keys().chain(self.there.of.keys());
        keys.any(|(by, part)| *by == dimension && *part != Part::Missing)
    }

    pub(super) fn name(&self, by: Dimension, part: Part) -> String {
        let name = self.parts.name(by, Kind::Other, part);
        name.unwrap_or_default()
    }
}

impl Sums {
    fn add(&mut self, key: (Dimension, Part), sum: &Sum) {
        let is_full = self.of.len() >= KEYS_MAX && !self.of.contains_key(&key);
        let key = if is_full { (key.0, Part::Other) } else { key };
        self.of.entry(key).or_default().merge(sum);
    }

    fn merge_ranges(&mut self, of: Dimension, doublings: u32) {
        for ((by, part), sum) in std::mem::take(&mut self.of) {
            let part = if by == of {
                part.merged(doublings)
            } else {
                part
            };
            self.of.entry((by, part)).or_default().merge(&sum);
        }
    }

    pub(super) fn get(&self, key: (Dimension, Part)) -> Sum {
        self.of.get(&key).copied().unwrap_or_default()
    }
}

impl Sum {
    /// The sums of one I/O, with its slow time, if it is slow.
    fn of(io: &FinishedIo, slow_ns: Option<u64>) -> Sum {
        Sum {
            ios: 1,
            bytes: io.bytes_done(),
            time_ns: io.total_ns().into(),
            slow: slow_ns.is_some().into(),
            slow_ns: slow_ns.unwrap_or(0).into(),
            errors: io.error.is_some().into(),
        }
    }

    fn merge(&mut self, more: &Sum) {
        self.ios += more.ios;
        self.bytes += more.bytes;
        self.time_ns += more.time_ns;
        self.slow += more.slow;
        self.slow_ns += more.slow_ns;
        self.errors += more.errors;
    }
}

/// The dimensions that are compared before the other facts of zios. Of two dimensions with equal differences, the
/// earlier is reported first.
const COMPARED: [Dimension; 19] = [
    Dimension::Fact(Fact::Rule),
    Dimension::Fact(Fact::Lane),
    Dimension::Device,
    Dimension::Fact(Fact::Class),
    Dimension::Op,
    Dimension::Type,
    Dimension::Size,
    Dimension::Offset,
    Dimension::Client,
    Dimension::Process,
    Dimension::Pid,
    Dimension::Thread,
    Dimension::Tid,
    Dimension::Cgroup,
    Dimension::Inode,
    Dimension::Fua,
    Dimension::Fact(Fact::Txg),
    Dimension::Error,
    Dimension::Depth,
];

fn compared() -> impl Iterator<Item = Dimension> {
    let facts = Fact::ALL.iter().map(|fact| Dimension::Fact(*fact));
    let more = facts.filter(|fact| !COMPARED.contains(fact));
    COMPARED.into_iter().chain(more)
}

/// Whether a dimension has the same values as another dimension. This is true of the type of a zio: it equals
/// the operation, because zios have no kernel letters.
fn is_again(dimension: Dimension, knows: Knows) -> bool {
    dimension == Dimension::Type && knows == Knows::Zios
}

/// The parts of the latency of one of the kernel's I/Os: the time before the driver got the I/O, and the time
/// for which the driver had it.
const KERNEL_WAITS: [Dimension; 2] = [Dimension::Queue, Dimension::Latency];

/// At most this many values of dimensions are distinguished. All other values count as
/// [`OTHER`](crate::interval::OTHER).
const KEYS_MAX: usize = 65_536;

/// The dimensions by which I/Os in flight on other devices are counted.
const BESIDE: [Dimension; 5] = [
    Dimension::Device,
    Dimension::Op,
    Dimension::Client,
    Dimension::Process,
    Dimension::Cgroup,
];

/// An I/O that has been in flight for this long counts as hung.
const HUNG_NS: u64 = 1_000_000_000;
/// At most this many hung I/Os are counted.
const HUNG_MAX: usize = 65_536;
