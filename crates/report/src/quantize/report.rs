//! `quantize` as a [`Report`]: one interval, with a page for each layer.

use dashpot_engine::OpSet;
use dashpot_engine::histogram::Histogram;
use dashpot_observe::{
    DeviceInterval, Layer, Past, Question, Schedule, Seen, elapsed_of_all, in_flight_of_all,
};
use dashpot_text::surface::Surface;

use super::{Aggregation, Disk, Quantize, Scope};
use crate::report::{Page, Pages, Report, Tells};

/// The report: latencies in powers of two, over one interval.
#[derive(Clone, Debug)]
pub struct QuantizeReport {
    /// The layers at which latencies are measured. Each layer has its own page.
    pub layers: Vec<Layer>,
    /// The only interval of the report.
    pub schedule: Schedule,
    /// The stretch of the past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// The operations that the report takes.
    pub ops: OpSet,
    /// Whether each disk has its own figures.
    pub by_disk: bool,
}

impl Report for QuantizeReport {
    fn question(&self) -> Question {
        Question {
            past: self.past,
            ..Question::latencies(&self.layers)
        }
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn tells(&self) -> Tells {
        Tells::LENGTH
    }

    fn makes_sums(&self) -> bool {
        true
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let page = |layer: &Layer| Box::new(self.page(*layer, seen, surface)) as Box<dyn Page>;
        self.layers.iter().map(page).collect()
    }
}

impl QuantizeReport {
    fn page(&self, layer: Layer, seen: &Seen, surface: &Surface) -> Quantize {
        let summed: Vec<&DeviceInterval> = seen.summed(layer).collect();
        Quantize {
            layer: (self.layers.len() > 1).then_some(layer),
            length: seen.length(),
            scope: if self.by_disk {
                let disks = seen.at(layer).iter();
                Scope::Disks(disks.map(|one| self.disk(one, layer)).collect())
            } else {
                Scope::Total(self.aggregate(&summed, layer))
            },
            in_flight: in_flight_of_all(summed),
            not_in_sums: self.not_in_sums(seen),
            lost: seen.lost,
            unmatched: seen.unmatched,
            unplaced: seen.unplaced,
            room: surface.room,
        }
    }

    fn disk(&self, interval: &DeviceInterval, layer: Layer) -> Disk {
        Disk {
            disk: interval.device.clone(),
            aggregation: self.aggregate(&[interval], layer),
        }
    }

    fn aggregate(&self, devices: &[&DeviceInterval], layer: Layer) -> Aggregation {
        let (mut latencies, mut bytes) = (Histogram::default(), 0);
        let ops = devices.iter().flat_map(|interval| &interval.ops);
        for op in ops.filter(|op| op.kind.is_in(self.ops)) {
            if let Some(at_layer) = op.at(layer) {
                latencies.merge(at_layer);
                bytes += op.bytes;
            }
        }
        Aggregation::new(&latencies, bytes, elapsed_of_all(devices.iter().copied()))
    }
}
