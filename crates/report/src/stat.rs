//! `stat`: any statistic, once per interval. It shows I/Os and bytes by the values of the breakdown and, if
//! the statistic measures a number, that number's distribution.

mod numbers;
mod report;

use std::fmt;

use dashpot_observe::{Group, InFlight, Length, Mention, Stacked, Unit};
use dashpot_rules::{nice_number, thousands, visible};
use dashpot_text::clock::time_of_day;
use dashpot_text::table::{Column, Room, prose_within, table, table_within};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use self::numbers::Numbers;
use super::per_second;
use super::report::{Page, Rows};

pub use self::report::StatReport;

/// An interval of a statistic. JSON: `{"statistic": "disk.latency[op=write][client]", "title": "Latency of
/// disk I/Os with op write, by client", "at_ns": 1764000000000000000, "elapsed_ns": 1000000000, "missed": 0,
/// "count": 5, "bytes": 20480, "numbers": numbers, "by": "client", "values": [{"value": "uid=0 pid=7",
/// "count": 5, "bytes": 20480, "numbers": numbers}, …], "in_flight": in flight, "lost": 0}`. Only a statistic
/// of a number has `numbers`: `{"n": 5, "p50_ns": 1000000, …}`. The keys of its figures end with `_bytes` if
/// the number is in bytes, and name no unit if the number is a count. Only a breakdown has `by` and `values`.
/// The values of `busy` are devices, each with its `"busy_percent"`. For the kernel's disks the object also
/// has `"unmatched": 0`; for sync calls, it has `"unplaced": 0`; if disks are stacked,
/// `"not_in_sums": [{"device": "loop0", "over": ["vda"]}]`.
#[derive(Clone, Debug, Serialize)]
pub struct Stat {
    /// The statistic's name.
    pub statistic: String,
    /// The statistic in English.
    pub title: String,
    /// The interval's end.
    pub at_ns: u64,
    /// The length of the interval, and how many intervals are missing because this one ended too late.
    #[serde(flatten)]
    pub length: Length,
    /// All selected I/Os.
    #[serde(flatten)]
    pub all: Amount,
    /// The breakdown of the selected I/Os.
    #[serde(flatten)]
    pub values: Option<Values>,
    /// The I/Os in flight at the interval's end.
    pub in_flight: InFlight,
    /// The disks whose I/Os would count twice.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_in_sums: Vec<Stacked>,
    /// The number of events that are missing because a buffer was full.
    pub lost: u64,
    /// The number of completions whose start was not seen; `None` if the source sees every start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unmatched: Option<u64>,
    /// How many sync calls were on unknown devices; `None` if the source watches no sync calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unplaced: Option<u64>,
    /// The interval's end in local time, in nanoseconds since some midnight.
    #[serde(skip)]
    pub local_ns: u64,
    /// The I/Os in flight that the remark mentions.
    #[serde(skip)]
    pub mention: Mention,
    /// The figure that the bars show.
    #[serde(skip)]
    pub bars: Bars,
    /// The width that the text may have.
    #[serde(skip)]
    pub room: Room,
}

/// The figure that bars show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bars {
    /// The number of I/Os.
    Count,
    /// The total size of the I/Os.
    Bytes,
    /// The share of the time in which the device was busy. A bar of full length means 100 %.
    Busy,
}

/// An amount of I/O.
#[derive(Clone, Debug, Serialize)]
pub struct Amount {
    /// How many I/Os there are.
    pub count: u64,
    /// The total size of these I/Os, in bytes.
    pub bytes: u64,
    /// The distribution of the statistic's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Numbers>,
    /// How much of the time the device was busy, if the statistic is about busy time.
    #[serde(flatten)]
    pub busy: Option<Busy>,
}

/// The share of the time in which a device had I/O in flight.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Busy {
    /// The share in percent; `None` if the interval has no length.
    pub busy_percent: Option<f64>,
}

/// The values of a breakdown.
#[derive(Clone, Debug)]
pub struct Values {
    /// The word of the breakdown's dimension.
    by: &'static str,
    /// Each value, in display order.
    each: Vec<(String, Amount)>,
    /// Whether the text shows the distribution of the number for each value. It shows bars instead if the
    /// values are themselves classes of that number.
    with_numbers: bool,
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Value<'a> {
            value: &'a str,
            #[serde(flatten)]
            amount: &'a Amount,
        }
        let each = self.each.iter();
        let values: Vec<Value<'_>> = each
            .map(|(value, amount)| Value { value, amount })
            .collect();
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("by", self.by)?;
        map.serialize_entry("values", &values)?;
        map.end()
    }
}

impl Amount {
    /// The I/O of a group, with the group's numbers in this unit.
    fn of(group: &Group, unit: Option<Unit>) -> Amount {
        Amount {
            count: group.count,
            bytes: group.bytes,
            numbers: unit.map(|unit| Numbers::of(&group.numbers, unit)),
            busy: None,
        }
    }
}

impl Busy {
    /// The share in percent, or 0 if it is not known.
    fn percent(self) -> f64 {
        self.busy_percent.unwrap_or(0.0)
    }

    fn cell(self) -> String {
        self.busy_percent
            .map_or_else(|| "-".to_owned(), |percent| format!("{percent:.1}"))
    }
}

impl Page for Stat {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }

    fn rows(&self) -> Option<Rows> {
        let by = self.values.as_ref().map(|values| values.by);
        let mut head = vec!["at_ns", "elapsed_ns"];
        head.extend(by);
        head.extend(["count", "bytes"]);
        if let Some(numbers) = &self.all.numbers {
            head.extend(numbers.columns());
        }
        if self.bars == Bars::Busy {
            head.push("busy_percent");
        }
        let rows = match &self.values {
            None => vec![self.row(None, &self.all)],
            Some(values) => {
                let each = values.each.iter();
                each.map(|(value, amount)| self.row(Some(value), amount))
                    .collect()
            }
        };
        Some(Rows { head, rows })
    }

    fn remark(&self) -> Option<String> {
        self.in_flight.line(self.mention, self.length.elapsed)
    }
}

impl Stat {
    fn row(&self, value: Option<&String>, amount: &Amount) -> Vec<String> {
        let elapsed_ns = self.length.elapsed.as_nanos().to_string();
        let mut row = vec![self.at_ns.to_string(), elapsed_ns];
        row.extend(value.cloned());
        row.extend([amount.count.to_string(), amount.bytes.to_string()]);
        if let Some(numbers) = &amount.numbers {
            let or_empty =
                |figure: Option<u64>| figure.map_or_else(String::new, |it| it.to_string());
            row.extend(numbers.figures().map(or_empty));
        }
        let percent = |busy: Busy| {
            busy.busy_percent
                .map_or_else(String::new, |it| it.to_string())
        };
        row.extend(amount.busy.map(percent));
        row
    }

    /// A line such as `10:32:01  1.00 s: 1,234 I/Os (1,234/s), 5,054,464 bytes (4.82M/s)`.
    fn summary(&self) -> String {
        let Amount { count, bytes, .. } = self.all;
        let elapsed = self.length.elapsed;
        let rate = |amount: u64| per_second(amount, elapsed).round() as u64;
        format!(
            "{}  {:.2} s: {} I/Os ({}/s), {} bytes ({}/s)",
            time_of_day(self.local_ns),
            elapsed.as_secs_f64(),
            thousands(count),
            thousands(rate(count)),
            thousands(bytes),
            nice_number(rate(bytes))
        )
    }
}

impl fmt::Display for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&prose_within(self.room, &self.summary()))?;
        if let Some(numbers) = &self.all.numbers
            && self.all.count > 0
        {
            f.write_str(&prose_within(self.room, &numbers.sentence()))?;
        }
        match &self.values {
            Some(values) if !values.each.is_empty() => {
                writeln!(f, "{}", self.table(values))
            }
            _ => Ok(()),
        }
    }
}

impl Stat {
    fn table(&self, values: &Values) -> String {
        let mut columns = vec![
            Column::Text(values.by),
            Column::Figure("I/Os"),
            Column::Figure("%"),
            Column::Figure("bytes"),
            Column::Figure("%"),
        ];
        let taken = if values.with_numbers {
            FIGURES_WIDTH + NUMBERS_WIDTH
        } else {
            FIGURES_WIDTH + 2 + BAR_WIDTH
        };
        let busy = (self.bars == Bars::Busy).then_some(Column::Figure("busy %"));
        let taken = taken + busy.map_or(0, |_| BUSY_WIDTH);
        columns.extend(busy);
        if values.with_numbers {
            columns.extend(["p50", "p90", "p99", "max"].map(Column::Figure));
        } else {
            columns.push(Column::Text(""));
        }
        let whole = table(&columns, self.rows(values, |name| name.to_owned()));
        // `taken` is the most that the figures may take: they often leave room for whole names.
        if whole
            .lines()
            .all(|line| self.room.has(line.chars().count()))
        {
            whole
        } else {
            let short = |name: &str| self.room.name_beside(taken, name);
            table_within(self.room, &columns, self.rows(values, short))
        }
    }

    fn rows(&self, values: &Values, named: impl Fn(&str) -> String) -> Vec<Vec<String>> {
        let rows = values.each.iter().map(|(value, amount)| {
            let mut row = vec![named(&visible(value))];
            row.extend(self.shares(amount));
            match (&amount.numbers, values.with_numbers) {
                (Some(numbers), true) => row.extend(numbers.cells()),
                _ => {
                    row.extend(amount.busy.map(Busy::cell));
                    row.push(self.bar(values, amount));
                }
            }
            row
        });
        rows.collect()
    }

    fn shares(&self, amount: &Amount) -> [String; 4] {
        let share = |part: u64, all: u64| match all {
            0 => "-".to_owned(),
            _ => format!("{:.1}", 100.0 * part as f64 / all as f64),
        };
        [
            thousands(amount.count),
            share(amount.count, self.all.count),
            nice_number(amount.bytes),
            share(amount.bytes, self.all.bytes),
        ]
    }

    /// A bar in proportion to the amount. The full length stands for the largest amount or, for busy time,
    /// for 100 %.
    fn bar(&self, values: &Values, amount: &Amount) -> String {
        let length = |amount: &Amount| match self.bars {
            Bars::Bytes => amount.bytes,
            Bars::Count => amount.count,
            Bars::Busy => amount.busy.map_or(0, |busy| busy.percent().round() as u64),
        };
        let most = match self.bars {
            Bars::Busy => Some(100),
            _ => values.each.iter().map(|(_, amount)| length(amount)).max(),
        };
        let part = u128::from(length(amount)) * BAR_WIDTH as u128;
        "#".repeat(part.div_ceil(u128::from(most.unwrap_or(0).max(1))) as usize)
    }
}

/// The width of the longest bar.
const BAR_WIDTH: usize = 24;
/// The width of the columns for I/Os, bytes and their shares, with the gaps before them.
const FIGURES_WIDTH: usize = 11 + 7 + 8 + 7;
/// The width of the column for a busy time, with the gap before it.
const BUSY_WIDTH: usize = 8;
/// The width of the columns for percentiles, with the gaps before them.
const NUMBERS_WIDTH: usize = 4 * 9;

#[cfg(test)]
mod tests;
