//! `diff`: the differences between two sides of recorded I/Os.

use std::fmt;

use dashpot_observe::Dimension;
use dashpot_observe::diff::{
    Beside, Compared, Comparison, FACTOR_LEAST, Finding, Hung, IOS_LEAST, Metered, POINTS_LEAST,
    Rate, SideSum,
};
use dashpot_rules::{nice_number, short_time, thousands, visible};
use dashpot_text::table::{Column, Room, prose_within, table_within};

use super::report::Page;

/// The report. The report's JSON is the JSON of the [`Comparison`].
#[derive(Clone, Debug)]
pub struct DiffReport {
    pub comparison: Comparison,
    /// The condition that selects slow I/Os, in words such as `latency at least 10ms`; `None` if slow means
    /// longer than usual on the other side.
    pub slow: Option<String>,
    /// The width that the text may have.
    pub room: Room,
}

impl Page for DiffReport {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(&self.comparison)
    }
}

impl fmt::Display for DiffReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.comparison;
        let mut lines = vec![self.first_line(), self.here_line()];
        lines.extend(found.there.as_ref().map(there_line));
        f.write_str(&prose_within(self.room, &lines.join("\n")))?;
        if !found.differs.is_empty() {
            write!(f, "\n{}", self.table())?;
        }
        let after: Vec<String> = [self.alike_line(), self.too_few_line(), self.spent_line()]
            .into_iter()
            .flatten()
            .chain(found.beside.iter().map(beside_line))
            .chain(found.hung.iter().map(hung_line))
            .chain(
                found
                    .failed
                    .iter()
                    .map(|rate| rate_line("More errors", rate)),
            )
            .chain(
                found
                    .rose
                    .iter()
                    .map(|rate| rate_line("More than there", rate)),
            )
            .chain(
                found
                    .fell
                    .iter()
                    .map(|rate| rate_line("Less than there", rate)),
            )
            .collect();
        if after.is_empty() {
            Ok(())
        } else {
            write!(f, "\n{}", prose_within(self.room, &after.join("\n")))
        }
    }
}

impl DiffReport {
    /// The finding, in a sentence.
    fn first_line(&self) -> String {
        let found = &self.comparison;
        match (found.finding, found.differs.first()) {
            (Finding::TooFew | Finding::NotSlower, _) if self.beside_slowness().is_some() => {
                self.beside_slowness().unwrap_or_default()
            }
            (Finding::TooFew, _) => format!(
                "Nothing to tell: {} slow I/Os here, and a comparison needs {IOS_LEAST}.",
                thousands(found.here.slow_count)
            ),
            (Finding::NotSlower, _) => format!(
                "Nothing differs: the I/Os here are no slower than those there (the share of slow I/Os is less than {FACTOR_LEAST} times as large)."
            ),
            (Finding::Slow, None) => format!(
                "Slower, but alike everywhere: no value's share of the slow time is {POINTS_LEAST} points above its share of the I/Os."
            ),
            (Finding::Slow, Some(first)) => sentence(first),
        }
    }

    /// A sentence about hung, failed or missing I/Os, for a side whose finished I/Os were not slower.
    fn beside_slowness(&self) -> Option<String> {
        let found = &self.comparison;
        let hung = found.hung.first().map(|hung| {
            let all: u64 = found.hung.iter().map(|hung| hung.count).sum();
            let device = visible(&hung.device);
            let (all, age) = (thousands(all), short_time(hung.oldest_ns));
            format!("Hung: {all} I/Os did not end; the oldest on {device} waited for {age}.")
        });
        let failed = || {
            let first = found.failed.first()?;
            Some(format!("Not slower, but I/Os failed: {}", figures(first)))
        };
        let fewer = || {
            let (here, there) = found.fewer()?;
            Some(format!(
                "Not slower, but fewer I/Os: {here:.0} per second, there {there:.0}."
            ))
        };
        let more = || {
            let first = found.rose.first()?;
            Some(format!("Not slower, but more: {}", figures(first)))
        };
        hung.or_else(failed).or_else(fewer).or_else(more)
    }

    fn here_line(&self) -> String {
        let slow = match &self.slow {
            Some(words) => format!("with {words}"),
            None => "were slower than the 99th percentile there".to_owned(),
        };
        let here = &self.comparison.here;
        format!(
            "Here: {} I/Os in {}, of which {} {slow}. Slow time: {}.",
            thousands(here.count),
            short_time(here.elapsed_ns),
            thousands(here.slow_count),
            short_time(here.slow_ns)
        )
    }

    fn table(&self) -> String {
        let columns = [
            Column::Text("DIMENSION"),
            Column::Text("value"),
            Column::Figure("slow time %"),
            Column::Figure("I/Os %"),
            Column::Figure("slow I/Os"),
        ];
        let rows = self.comparison.differs.iter().flat_map(|one| {
            let shown = one.values.iter().filter(|value| value.points() > 0.0);
            shown.enumerate().map(|(at, value)| {
                let dimension = if at == 0 { one.dimension.word() } else { "" };
                vec![
                    dimension.to_owned(),
                    self.room.name_beside(TAKEN, &visible(&value.value)),
                    format!("{:.1}", value.slow_percent),
                    format!("{:.1}", value.ios_percent),
                    thousands(value.slow_count),
                ]
            })
        });
        table_within(self.room, &columns, rows)
    }

    fn alike_line(&self) -> Option<String> {
        let words = words_of(&self.comparison.alike)?;
        Some(format!("Not different: {words}."))
    }

    fn too_few_line(&self) -> Option<String> {
        let words = words_of(&self.comparison.too_few)?;
        Some(format!(
            "Perhaps different, but the values have fewer than {IOS_LEAST} slow I/Os: {words}."
        ))
    }

    fn spent_line(&self) -> Option<String> {
        let spent = self.comparison.spent.iter();
        let words: Vec<String> = spent
            .map(|one| format!("{} {:.0} %", wait_word(one.wait), one.percent))
            .collect();
        (!words.is_empty())
            .then(|| format!("The slow I/Os spent their time in: {}.", words.join(", ")))
    }
}

fn words_of(dimensions: &[Dimension]) -> Option<String> {
    let words: Vec<&str> = dimensions.iter().map(|one| one.word()).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// The word for a wait. For I/Os of the kernel, the wait at the device is the time for which the driver had
/// the I/O.
fn wait_word(wait: Dimension) -> &'static str {
    match wait {
        Dimension::Latency => "device",
        wait => wait.word(),
    }
}

fn there_line(there: &SideSum) -> String {
    format!(
        "There: {} I/Os in {}, of which {} were as slow. Slow time: {}.",
        thousands(there.count),
        short_time(there.elapsed_ns),
        thousands(there.slow_count),
        short_time(there.slow_ns)
    )
}

fn sentence(first: &Compared) -> String {
    let Some(value) = first.values.first() else {
        return String::new();
    };
    format!(
        "Slower: {} {} has {:.0} % of the slow time and {:.0} % of the I/Os.",
        first.dimension.word(),
        visible(&value.value),
        value.slow_percent,
        value.ios_percent
    )
}

fn rate_line(what: &str, rate: &Rate) -> String {
    format!("{what}: {}", figures(rate))
}

/// A value and its rates on the two sides.
fn figures(rate: &Rate) -> String {
    let amount = |figure: f64| match rate.metric {
        Metered::Ops => format!("{figure:.0} I/Os per second"),
        Metered::Bytes => format!("{} bytes per second", nice_number(figure.round() as u64)),
        Metered::Depth => format!("{figure:.1} I/Os in flight"),
        Metered::Errors => format!("{figure:.1} errors per second"),
    };
    format!(
        "{} {}: {}, there {}.",
        rate.dimension.word(),
        visible(&rate.value),
        amount(rate.here_per_s),
        amount(rate.there_per_s)
    )
}

fn beside_line(beside: &Beside) -> String {
    format!(
        "In flight elsewhere when slow I/Os were issued: {} {}: {:.1}, otherwise {:.1}.",
        beside.dimension.word(),
        visible(&beside.value),
        beside.slow_mean,
        beside.usual_mean
    )
}

fn hung_line(hung: &Hung) -> String {
    format!(
        "In flight for 1 s or more when a file was sealed: {} of {}, for up to {}.",
        thousands(hung.count),
        visible(&hung.device),
        short_time(hung.oldest_ns)
    )
}

/// The width of the columns other than the values' names, including the gaps before them.
const TAKEN: usize = 11 + 13 + 8 + 12;

#[cfg(test)]
mod tests {
    use dashpot_observe::Dimension;
    use dashpot_observe::diff::{Spent, ValueShare};
    use dashpot_text::table::assert_fits;
    use expect_test::expect;

    use super::*;

    fn side(slow_count: u64) -> SideSum {
        SideSum {
            elapsed_ns: 60_000_000_000,
            count: 12_345,
            slow_count,
            slow_ns: slow_count * 20_000_000,
        }
    }

    fn report(finding: Finding, differs: Vec<Compared>) -> DiffReport {
        DiffReport {
            comparison: Comparison {
                here: side(310),
                there: Some(side(2)),
                finding,
                differs,
                alike: vec![Dimension::Op, Dimension::Size],
                too_few: vec![Dimension::Offset],
                spent: vec![Spent {
                    wait: Dimension::Hold,
                    percent: 98.7,
                }],
                beside: vec![Beside {
                    dimension: Dimension::Device,
                    value: "d7".to_owned(),
                    slow_mean: 31.25,
                    usual_mean: 0.5,
                }],
                fell: Vec::new(),
                failed: Vec::new(),
                hung: Vec::new(),
                rose: vec![Rate {
                    dimension: Dimension::Client,
                    value: "uid=0 pid=7".to_owned(),
                    metric: Metered::Ops,
                    there_per_s: 10.0,
                    here_per_s: 523.4,
                }],
            },
            slow: None,
            room: Room(Some(80)),
        }
    }

    #[test]
    fn the_finding_comes_first_and_lines_fit() {
        let value = |value: &str, slow_percent, ios_percent| ValueShare {
            value: value.to_owned(),
            slow_percent,
            ios_percent,
            slow_count: 300,
        };
        let compared = |dimension, value: ValueShare| Compared {
            dimension,
            points: value.points(),
            values: vec![value],
        };
        let differs = vec![
            compared(Dimension::Device, value("d3", 98.2, 10.1)),
            compared(
                Dimension::Process,
                value(
                    "a name that is much longer than its column has room for",
                    40.0,
                    1.0,
                ),
            ),
        ];
        let text = report(Finding::Slow, differs).to_string();
        assert_fits(Room(Some(80)), &text);
        expect![[r#"
            Slower: device d3 has 98 % of the slow time and 10 % of the I/Os.
            Here: 12,345 I/Os in 60.0s, of which 310 were slower than the 99th percentile
            there. Slow time: 6.20s.
            There: 12,345 I/Os in 60.0s, of which 2 were as slow. Slow time: 40.0ms.

            DIMENSION  value                                 slow time %  I/Os %  slow I/Os
            device     d3                                           98.2    10.1        300
            process    a name that is muc…lumn has room for         40.0     1.0        300

            Not different: op, size.
            Perhaps different, but the values have fewer than 30 slow I/Os: offset.
            The slow I/Os spent their time in: hold 99 %.
            In flight elsewhere when slow I/Os were issued: device d7: 31.2, otherwise 0.5.
            More than there: client uid=0 pid=7: 523 I/Os per second, there 10 I/Os per
            second.
        "#]]
        .assert_eq(&text);
    }

    #[test]
    fn nothing_is_said_in_so_many_words() {
        let first = |finding| {
            let mut report = report(finding, Vec::new());
            report.comparison.rose.clear();
            let text = report.to_string();
            text.lines().next().unwrap_or_default().to_owned()
        };
        assert!(
            first(Finding::NotSlower).starts_with("Nothing differs: the I/Os here are no slower")
        );
        assert!(first(Finding::TooFew).starts_with("Nothing to tell: 310 slow I/Os"));
        assert!(first(Finding::Slow).starts_with("Slower, but alike everywhere"));
    }
    #[test]
    fn what_did_not_end_or_failed_is_not_called_nothing() {
        let mut report = report(Finding::NotSlower, Vec::new());
        let first = |report: &DiffReport| report.to_string().lines().next().map(str::to_owned);
        let told = |report: &DiffReport| first(report).unwrap_or_default();
        assert_eq!(
            told(&report),
            "Not slower, but more: client uid=0 pid=7: 523 I/Os per second, there 10 I/Os per"
        );
        report.comparison.there = Some(SideSum {
            count: 123_450,
            ..side(2)
        });
        assert_eq!(
            told(&report),
            "Not slower, but fewer I/Os: 206 per second, there 2058."
        );
        report.comparison.failed.push(Rate {
            dimension: Dimension::Error,
            value: "EIO".to_owned(),
            metric: Metered::Errors,
            there_per_s: 0.0,
            here_per_s: 2.0,
        });
        assert!(told(&report).starts_with("Not slower, but I/Os failed: error EIO: 2.0 errors"));
        report.comparison.hung.push(Hung {
            device: "d3".to_owned(),
            count: 3,
            oldest_ns: 12_000_000_000,
        });
        assert_eq!(
            told(&report),
            "Hung: 3 I/Os did not end; the oldest on d3 waited for 12.0s."
        );
    }
}
