//! `iolatency` as a [`Report`]: selects I/Os and groups them.

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Op, glob_matches};
use dashpot_observe::{
    DeviceInterval, Dimension, Group, Groups, Kind, Layer, OTHER, OpInterval, Past, Question,
    Schedule, Seen, in_flight_of_all,
};
use dashpot_text::clock::time_of_day;
use dashpot_text::surface::Surface;

use super::{Boundary, Distribution, ENDING, Interval, Scope, Style, Value, opening};
use crate::breakdown::{is_always_apart, order_of, value_of};
use crate::report::{Pages, Report, Words};

/// The report: histograms or percentiles, once per interval.
#[derive(Clone, Debug)]
pub struct IolatencyReport {
    /// The layers at which latencies are measured, at least one.
    pub layers: Vec<Layer>,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// Whether the report ends only with Ctrl-C.
    pub endless: bool,
    /// The stretch of the past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// Whether latencies are measured from the I/O's arrival (`-Q`).
    pub queued: bool,
    /// The glob that the kernel's letters for an I/O (`R`, `WS`) must match; `None` takes all I/Os.
    pub types: Option<String>,
    /// The breakdown; `None` for a single histogram.
    pub by: Option<Dimension>,
    /// The choice of the row that counts a latency of exactly 2^k ms.
    pub boundary: Boundary,
    /// Whether the text shows histograms or percentiles.
    pub style: Style,
    /// Whether the time of day comes before each interval (`-T`).
    pub timestamp: bool,
    /// Whether even a narrow terminal gets whole names.
    pub wide: bool,
}

impl Report for IolatencyReport {
    fn question(&self) -> Question {
        Question {
            by: self.by.filter(|by| !is_always_apart(*by)),
            queued: self.queued,
            past: self.past,
            ..Question::latencies(&self.layers)
        }
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn makes_sums(&self) -> bool {
        true
    }

    fn open(&mut self, _: &Surface) -> Pages {
        let seconds = self.schedule.interval.as_nanos() as f64 / 1e9;
        match self.past {
            Some(_) => Pages::new(),
            None => vec![Box::new(Words(opening(seconds, self.endless)))],
        }
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let mut places: Vec<&DeviceInterval> = Vec::new();
        for device in self.layers.iter().flat_map(|layer| seen.summed(*layer)) {
            // The layers `disk` and `store` have the same devices, which count only once.
            if !places.iter().any(|known| std::ptr::eq(*known, device)) {
                places.push(device);
            }
        }
        let time = || time_of_day(surface.local_ns(seen.at_ns));
        vec![Box::new(Interval {
            at_ns: seen.at_ns,
            time: self.timestamp.then(time),
            length: seen.length(),
            scope: self.scope(seen),
            in_flight: in_flight_of_all(places),
            not_in_sums: self.not_in_sums(seen),
            lost: seen.lost,
            unmatched: seen.unmatched,
            unplaced: seen.unplaced,
            style: self.style,
            mention: seen.mention(),
            room: surface.room(self.wide),
        })]
    }

    fn close(&mut self, is_whole: bool, _: &Surface) -> Pages {
        if is_whole && self.past.is_none() {
            vec![Box::new(Words(ENDING.to_owned()))]
        } else {
            Pages::new()
        }
    }
}

impl IolatencyReport {
    /// The devices of a layer that the report shows, each for itself or in a sum.
    fn devices<'a>(&self, seen: &'a Seen, layer: Layer) -> Vec<&'a DeviceInterval> {
        if self.by == Some(Dimension::Device) {
            seen.at(layer).iter().collect()
        } else {
            seen.summed(layer).collect()
        }
    }

    fn scope(&self, seen: &Seen) -> Scope {
        match (self.by, &self.layers[..]) {
            (None, [layer]) => Scope::All(self.whole(seen, *layer)),
            (None, layers) => Scope::By {
                by: "layer",
                values: layers
                    .iter()
                    .map(|layer| Value {
                        value: layer.word().to_owned(),
                        layer: None,
                        distribution: self.whole(seen, *layer),
                    })
                    .collect(),
            },
            (Some(by), _) => Scope::By {
                by: by.word(),
                values: self.values(by, seen),
            },
        }
    }

    /// All latencies at a layer.
    fn whole(&self, seen: &Seen, layer: Layer) -> Distribution {
        let mut all = Histogram::default();
        self.ops(self.devices(seen, layer), layer)
            .for_each(|(_, _, latencies)| all.merge(latencies));
        Distribution::new(&all, self.boundary)
    }

    /// The latencies of each value. With several layers, a value's entries for the layers follow one another.
    fn values(&self, by: Dimension, seen: &Seen) -> Vec<Value> {
        let mut all = Groups::default();
        for layer in &self.layers {
            self.groups(by, seen, *layer)
                .for_each(|group| all.add(group));
        }
        let shown: Vec<String> = all
            .shown(order_of(by))
            .into_iter()
            .map(|one| one.value)
            .collect();
        let of_layer = |layer: &Layer| {
            let mut groups = Groups::default();
            for group in self.groups(by, seen, *layer) {
                let value = if shown.contains(&group.value) {
                    group.value
                } else {
                    OTHER.to_owned()
                };
                groups.add(Group { value, ..group });
            }
            (*layer, groups.all(order_of(by)))
        };
        let layers: Vec<(Layer, Vec<Group>)> = self.layers.iter().map(of_layer).collect();
        let of_value = |name: &String| {
            let each = layers.iter().filter_map(|(layer, groups)| {
                let group = groups.iter().find(|group| group.value == *name)?;
                Some(self.value(*layer, group))
            });
            each.collect::<Vec<Value>>()
        };
        shown.iter().flat_map(of_value).collect()
    }

    fn groups<'a>(
        &'a self,
        by: Dimension,
        seen: &'a Seen,
        layer: Layer,
    ) -> impl Iterator<Item = Group> + 'a {
        let ops = self.ops(self.devices(seen, layer), layer);
        ops.map(move |(device, op, latencies)| Group {
            value: value_of(by, device, op).to_owned(),
            count: latencies.count(),
            bytes: op.bytes,
            numbers: latencies.clone(),
        })
    }

    fn value(&self, layer: Layer, group: &Group) -> Value {
        Value {
            value: group.value.clone(),
            layer: (self.layers.len() > 1).then_some(layer),
            distribution: Distribution::new(&group.numbers, self.boundary),
        }
    }

    /// The operations that the report takes, with their devices and their latencies.
    fn ops<'a>(
        &self,
        devices: Vec<&'a DeviceInterval>,
        layer: Layer,
    ) -> impl Iterator<Item = (&'a str, &'a OpInterval, &'a Histogram)> {
        let glob = self.types.as_deref().unwrap_or("*");
        let all = devices.into_iter().flat_map(|interval| {
            let device = interval.device.as_str();
            interval.ops.iter().map(move |op| (device, op))
        });
        all.filter(move |(_, op)| has_type(op, glob))
            .filter_map(move |(device, op)| Some((device, op, op.measured(layer, self.queued)?)))
    }
}

/// Whether a glob matches the kernel's letters for an operation. Writes that ask for durability count as
/// writes, so both `W` and `WF` match them.
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
