//! `stat` as a [`Report`]: groups the I/O of devices by the values of the breakdown.

use dashpot_engine::histogram::Histogram;
use dashpot_observe::{
    DeviceInterval, Dimension, Group, Groups, Metric, OpInterval, Order, Past, Question, Schedule,
    Seen, Statistic, Unit, in_flight_of_all,
};

use super::{Amount, Stat, Values};
use crate::breakdown::{is_always_apart, order_of, value_of};
use crate::report::{Pages, Report, Words};
use crate::surface::Surface;

/// The report: a statistic, once per interval.
#[derive(Clone, Debug)]
pub struct StatReport {
    /// The statistic.
    pub statistic: Statistic,
    /// The intervals of the report.
    pub schedule: Schedule,
    /// The past that the report covers; `None` if the report begins now.
    pub past: Option<Past>,
    /// Whether a narrow terminal, too, gets whole names.
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

    fn open(&mut self, _: &Surface) -> Pages {
        vec![Box::new(Words(self.statistic.title() + "\n\n"))]
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let devices = seen.at(self.statistic.layer);
        let unit = self.statistic.measure().map(Dimension::unit);
        vec![Box::new(Stat {
            statistic: self.statistic.to_string(),
            title: self.statistic.title(),
            at_ns: seen.at_ns,
            length: seen.length(),
            all: Amount::of(&self.all(devices), unit),
            values: self
                .statistic
                .breakdown()
                .map(|by| self.values(by, unit, devices, surface)),
            in_flight: in_flight_of_all(devices),
            lost: seen.lost,
            unmatched: seen.unmatched,
            local_ns: surface.local_ns(seen.at_ns),
            mention: seen.mention(),
            bars_of_bytes: self.statistic.metric == Metric::Bytes,
            room: surface.room(self.wide),
        })]
    }
}

impl StatReport {
    /// All I/O together.
    fn all(&self, devices: &[DeviceInterval]) -> Group {
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
        devices: &[DeviceInterval],
        surface: &Surface,
    ) -> Values {
        let mut groups = Groups::default();
        for interval in devices {
            for op in &interval.ops {
                groups.add(self.group(value_of(by, &interval.device, op), op));
            }
        }
        let shown = match surface.is_for_programs() {
            true => groups.all(self.order(by)),
            false => groups.shown(self.order(by)),
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
