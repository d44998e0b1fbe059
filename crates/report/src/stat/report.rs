//! `stat` as a [`Report`]: groups the I/O of devices by the values of the breakdown.

use dashpot_engine::histogram::Histogram;
use dashpot_observe::{
    DeviceInterval, Dimension, Group, Groups, Metric, OpInterval, Order, Past, Question, Schedule,
    Seen, Statistic, Unit, in_flight_of_all,
};
use dashpot_text::surface::Surface;

use super::{Amount, Bars, Busy, Stat, Values};
use crate::breakdown::{is_always_apart, order_of, value_of};
use crate::report::{Pages, Report, Words};

/// The report: a statistic, once per interval.
#[derive(Clone, Debug)]
pub struct StatReport {
    pub statistic: Statistic,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// The stretch of the past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// Whether even a narrow terminal gets whole names.
    pub wide: bool,
}

impl Report for StatReport {
    fn question(&self) -> Question {
        let question = self.statistic.question();
        Question {
            by: question.by.filter(|by| !is_always_apart(*by)),
            past: self.past,
            ..question
        }
    }

    fn schedule(&self) -> Schedule {
        self.schedule
    }

    fn makes_sums(&self) -> bool {
        self.bars() != Bars::Busy
    }

    fn open(&mut self, _: &Surface) -> Pages {
        vec![Box::new(Words(self.statistic.title() + "\n\n"))]
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let devices = self.devices(seen);
        // The rows of devices are of all of them, but a disk over others is in no sum.
        let summed: Vec<&DeviceInterval> = if self.makes_sums() {
            seen.summed(self.statistic.layer).collect()
        } else {
            devices.clone()
        };
        let unit = self.statistic.measure().map(Dimension::unit);
        vec![Box::new(Stat {
            statistic: self.statistic.to_string(),
            title: self.statistic.title(),
            at_ns: seen.at_ns,
            length: seen.length(),
            all: Amount::of(&self.all(&summed), unit),
            values: self.statistic.breakdown().map(|by| match self.bars() {
                Bars::Busy => busy(by, &devices, surface),
                _ => self.values(by, unit, &devices, surface),
            }),
            in_flight: in_flight_of_all(summed),
            not_in_sums: self.not_in_sums(seen),
            lost: seen.lost,
            unmatched: seen.unmatched,
            unplaced: seen.unplaced,
            local_ns: surface.local_ns(seen.at_ns),
            mention: seen.mention(),
            bars: self.bars(),
            room: surface.room(self.wide),
        })]
    }
}

impl StatReport {
    /// The devices of the statistic. For a busy time, this function selects the devices itself. A source
    /// would select I/Os, but the I/Os that it leaves out make a device busy, too.
    fn devices<'a>(&self, seen: &'a Seen) -> Vec<&'a DeviceInterval> {
        let is_own = |name| self.bars() != Bars::Busy || self.statistic.selects_device(name);
        let layer = self.statistic.layer;
        let has_rows = self.statistic.breakdown() == Some(Dimension::Device);
        let devices: Vec<&DeviceInterval> = if self.makes_sums() && !has_rows {
            seen.summed(layer).collect()
        } else {
            seen.at(layer).iter().collect()
        };
        devices
            .into_iter()
            .filter(|interval| is_own(&interval.device))
            .collect()
    }

    fn bars(&self) -> Bars {
        match self.statistic.metric {
            Metric::Bytes => Bars::Bytes,
            Metric::Busy => Bars::Busy,
            Metric::Ops | Metric::Errors | Metric::Of(_) => Bars::Count,
        }
    }

    /// All I/O together.
    fn all(&self, devices: &[&DeviceInterval]) -> Group {
        let mut all = Groups::default();
        for op in devices.iter().flat_map(|interval| &interval.ops) {
            all.add(self.group("all", op));
        }
        all.shown(Order::ByCount).pop().unwrap_or_default()
    }

    fn values(
        &self,
        by: Dimension,
        unit: Option<Unit>,
        devices: &[&DeviceInterval],
        surface: &Surface,
    ) -> Values {
        let mut groups = Groups::default();
        for interval in devices {
            for op in &interval.ops {
                groups.add(self.group(value_of(by, &interval.device, op), op));
            }
        }
        let shown = if surface.is_for_programs() {
            groups.all(self.order(by))
        } else {
            groups.shown(self.order(by))
        };
        Values {
            by: by.word(),
            each: shown
                .into_iter()
                .map(|group| {
                    let amount = Amount::of(&group, unit);
                    (group.value, amount)
                })
                .collect(),
            with_numbers: self.statistic.measure().is_some() && self.statistic.by.is_some(),
        }
    }

    fn order(&self, by: Dimension) -> Order {
        match (order_of(by), self.statistic.metric) {
            (Order::ByCount, Metric::Bytes) => Order::ByBytes,
            (order, _) => order,
        }
    }

    fn group(&self, value: &str, op: &OpInterval) -> Group {
        let numbers = self.statistic.numbers(op);
        Group {
            value: value.to_owned(),
            count: op.completed,
            bytes: op.bytes,
            numbers: numbers.map_or_else(Histogram::default, Histogram::clone),
        }
    }
}

/// The devices that were busy or had I/O, the busiest first. A program that reads the output gets all
/// devices.
fn busy(by: Dimension, devices: &[&DeviceInterval], surface: &Surface) -> Values {
    let mut each: Vec<(String, Amount)> = devices.iter().map(|one| busy_of(one)).collect();
    let percent = |amount: &Amount| amount.busy.map_or(0.0, Busy::percent);
    if !surface.is_for_programs() {
        each.retain(|(_, amount)| amount.count > 0 || percent(amount) > 0.0);
    }
    each.sort_by(|(name, one), (other_name, other)| {
        let by_share = percent(other).total_cmp(&percent(one));
        by_share.then_with(|| name.cmp(other_name))
    });
    Values {
        by: by.word(),
        each,
        with_numbers: false,
    }
}

/// A device, and the share of the interval in which it had I/O in flight.
fn busy_of(interval: &DeviceInterval) -> (String, Amount) {
    let length = interval.elapsed.as_secs_f64();
    let percent = 100.0 * (interval.busy.as_secs_f64() / length);
    let amount = Amount {
        count: interval.ops.iter().map(|op| op.completed).sum(),
        bytes: interval.ops.iter().map(|op| op.bytes).sum(),
        numbers: None,
        busy: Some(Busy {
            busy_percent: (length > 0.0).then_some(percent),
        }),
    };
    (interval.device.clone(), amount)
}
