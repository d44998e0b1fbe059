//! `iolatency` as a [`Report`]: selects I/Os and groups them.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Op, glob_matches};
use dashpot_observe::{
    DeviceInterval, Dimension, Group, Groups, Kind, Layer, OpInterval, Past, Question, Schedule,
    Seen, in_flight_of_all,
};

use super::{Boundary, Distribution, ENDING, Interval, Scope, Style, Value, opening};
use crate::breakdown::{is_always_apart, order_of, value_of};
use crate::clock::time_of_day;
use crate::report::{Pages, Report, Words};
use crate::surface::Surface;

/// The report: histograms or percentiles, once per interval.
#[derive(Clone, Debug)]
pub struct IolatencyReport {
    /// The layer at which latencies are measured.
    pub layer: Layer,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// Whether the report ends only with Ctrl-C.
    pub endless: bool,
    /// The past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// Whether latencies begin with the I/O's arrival (`-Q`).
    pub queued: bool,
    /// The types of I/O that the report takes, as a glob over the kernel's letters; `None` takes all types.
    pub types: Option<String>,
    /// The breakdown; `None` for a single histogram.
    pub by: Option<Dimension>,
    /// The edges of rows.
    pub boundary: Boundary,
    /// The style of latencies.
    pub style: Style,
    /// Whether the time of day comes before each interval (`-T`).
    pub timestamp: bool,
    /// Whether a narrow terminal, too, gets whole names.
    pub wide: bool,
}

impl Report for IolatencyReport {
    fn question(&self) -> Question {
        Question {
            by: self.by.filter(|by| !is_always_apart(*by)),
            queued: self.queued,
            past: self.past,
            ..Question::latencies(&[self.layer])
        }
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn open(&mut self, _: &Surface) -> Pages {
        let seconds = self.schedule.interval.as_nanos() as f64 / 1e9;
        match self.past {
            Some(_) => Pages::new(),
            None => vec![Box::new(Words(opening(seconds, self.endless)))],
        }
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let devices = seen.at(self.layer);
        let time = || time_of_day(surface.local_ns(seen.at_ns));
        vec![Box::new(Interval {
            at_ns: seen.at_ns,
            time: self.timestamp.then(time),
            length: seen.length(),
            scope: self.scope(devices),
            in_flight: in_flight_of_all(devices),
            lost: seen.lost,
            unmatched: seen.unmatched,
            style: self.style,
            mention: seen.mention(),
            room: surface.room(self.wide),
        })]
    }

    fn close(&mut self, is_whole: bool, _: &Surface) -> Pages {
        match is_whole && self.past.is_none() {
            true => vec![Box::new(Words(ENDING.to_owned()))],
            false => Pages::new(),
        }
    }
}

impl IolatencyReport {
    fn scope(&self, devices: &[DeviceInterval]) -> Scope {
        let taken = self.ops(devices);
        let Some(by) = self.by else {
            let mut all = Histogram::default();
            taken.for_each(|(_, _, latencies)| all.merge(latencies));
            return Scope::All(Distribution::new(&all, self.boundary));
        };
        let mut groups = Groups::default();
        taken.for_each(|(device, op, latencies)| {
            groups.add(Group {
                value: value_of(by, device, op).to_owned(),
                count: latencies.count(),
                bytes: op.bytes,
                numbers: latencies.clone(),
            });
        });
        let shown = groups.shown(order_of(by)).into_iter();
        let values = shown.map(|group| Value {
            value: group.value,
            distribution: Distribution::new(&group.numbers, self.boundary),
        });
        Scope::By {
            by: by.word(),
            values: values.collect(),
        }
    }

    /// The operations that the report takes, with their devices and their latencies.
    fn ops<'a>(
        &self,
        devices: &'a [DeviceInterval],
    ) -> impl Iterator<Item = (&'a str, &'a OpInterval, &'a Histogram)> {
        let glob = self.types.as_deref().unwrap_or("*");
        let all = devices.iter().flat_map(|interval| {
            let device = interval.device.as_str();
            interval.ops.iter().map(move |op| (device, op))
        });
        all.filter(move |(_, op)| has_type(op, glob))
            .filter_map(|(device, op)| Some((device, op, op.measured(self.layer, self.queued)?)))
    }
}

/// Whether a glob over the kernel's letters matches an operation. Writes that ask for durability
/// count as writes, so both `W` and `WF` match them.
fn has_type(op: &OpInterval, glob: &str) -> bool {
    if let Some(rwbs) = &op.rwbs {
        return glob_matches(glob.as_bytes(), rwbs.as_bytes());
    }
    let letters: &[&str] = match op.kind {
        Kind::Op(Op::Read) => &["R"],
        Kind::Op(Op::Write) => &["W", "WF"],
        Kind::Op(Op::Zero) => &["W"],
        Kind::Op(Op::Flush | Op::Sync) => &["F"],
        Kind::Op(Op::Trim) => &["D"],
        Kind::Op(Op::Cache) | Kind::Other => &["RA"],
        Kind::Op(_) => &["N"],
    };
    let mut letters = letters.iter();
    letters.any(|letters| glob_matches(glob.as_bytes(), letters.as_bytes()))
}
