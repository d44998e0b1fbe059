//! Proof of injection: what a rule asked for beside what was achieved, how late that was, and
//! whether it is what was promised.
//!
//! Only zios that were held are in its figures: their service, as asked for, and the time from the
//! end of their lane's wait to the moment at which the reply was offered. Percentiles of a constant
//! are exact to lateness's bucket; of a distribution, to 1.2 %. Means and extremes are exact.

mod figures;
mod rows;
mod verdict;

use std::fmt;

use dashpot_engine::Duration;
use serde::Serialize;

use crate::api::types::Rule;
use crate::report::nice::short_time;
use figures::{Error, Figures, exact_time};
use rows::Row;
pub(crate) use verdict::{Facts, Verdict};

/// Columns of a report's text, of the bar of a row, and of its count.
pub(crate) const WIDTH: usize = 80;
const BAR_WIDTH: usize = 20;

/// The proof of one rule. JSON: `{"rule": as `list` has it, "verdict": "kept" | "not-kept" |
/// "unproven", "why": text, "warnings": [text, …], "allowed_lateness_ns": 31000, "requested":
/// figures, "achieved": figures, "error": {"mean_ns": 14200, "p50_ns": …, "p99_ns": …},
/// "lateness": figures, "rows": [{"from_ns": 10000000, "to_ns": 10000999, "requested": 1000,
/// "achieved": 0}, …]}`, with figures as `{"n": 1000, "mean_ns": …, "p50_ns": …, "p99_ns": …,
/// "max_ns": …}`. Both ends of a row are in it. What is not known is null.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Proof {
    pub(crate) rule: Rule,
    pub(crate) verdict: Verdict,
    /// The verdict's reason.
    pub(crate) why: String,
    /// What distorts the figures or is worth knowing beside them.
    pub(crate) warnings: Vec<String>,
    /// The median lateness that is promised.
    pub(crate) allowed_lateness_ns: u64,
    requested: Figures,
    achieved: Figures,
    error: Error,
    lateness: Figures,
    rows: Vec<Row>,
    /// The service time, if there was but one.
    #[serde(skip)]
    constant_ns: Option<u64>,
}

impl Proof {
    pub(crate) fn of(facts: &Facts<'_>) -> Proof {
        let (verdict, why) = facts.verdict();
        let requested = Figures::of(facts.requested);
        let lateness = Figures::of(facts.lateness);
        let constant_ns = rows::constant(facts.requested);
        let achieved = match constant_ns {
            Some(service) => Figures::of(facts.achieved).at_percentiles_of(&lateness, service),
            None => Figures::of(facts.achieved),
        };
        Proof {
            rule: facts.rule.clone(),
            verdict,
            why,
            warnings: facts.warnings(verdict),
            allowed_lateness_ns: facts.allowed_lateness(),
            error: Error::between(&requested, &achieved),
            rows: rows::rows(facts.requested, facts.achieved, facts.lateness),
            requested,
            achieved,
            lateness,
            constant_ns,
        }
    }

    fn title(&self) -> String {
        let Rule { id, disk, rule, .. } = &self.rule;
        let name = self.rule.name.as_ref();
        let name = name.map_or_else(String::new, |name| format!(" ({name})"));
        format!("rule {id}{name} on {disk}: {rule}")
    }

    /// What became of the zios that matched; what is rare is said only where it happened.
    fn counts(&self) -> String {
        let counters = &self.rule.counters;
        let rare = [
            ("failed", counters.failed),
            ("not drawn", counters.not_drawn),
            ("not counted", counters.not_counted),
            ("beaten", counters.beaten),
        ];
        let rare = rare.into_iter().filter(|(_, count)| *count > 0);
        let always = [
            ("matched", counters.matched),
            ("injected", counters.injected),
            ("held", counters.held),
            ("late", counters.late),
            ("overrun", counters.overrun),
            ("aborted", counters.aborted),
            ("now", counters.now),
        ];
        let words = always.into_iter().chain(rare);
        let words: Vec<String> = words
            .map(|(word, count)| format!("{word} {count}"))
            .collect();
        let age = short_time(self.rule.age_ns);
        format!("armed {age} ago: {}", words.join(", "))
    }

    fn write_figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = ["n", "mean", "p50", "p99", "max"].map(str::to_owned);
        write_cells(f, "", &titles)?;
        write_cells(f, "requested", &self.requested.cells(exact_time))?;
        write_cells(f, "achieved", &self.achieved.cells(exact_time))?;
        write_cells(f, "error", &self.error.cells())?;
        write_cells(f, "lateness", &self.lateness.cells(short_time))
    }

    fn write_rows(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{:<14}{:>32} {:>32}", "from", "requested", "achieved")?;
        let counts = self.rows.iter().map(|row| row.requested.max(row.achieved));
        let longest = counts.max().unwrap_or_default();
        for (index, row) in self.rows.iter().enumerate() {
            write!(f, "{:<14}", self.label(index, row))?;
            write_bar(f, row.requested, longest)?;
            write!(f, " ")?;
            write_bar(f, row.achieved, longest)?;
            writeln!(f)?;
        }
        Ok(())
    }

    /// Rows beside a constant are labelled with what is added to it.
    fn label(&self, index: usize, row: &Row) -> String {
        match self.constant_ns {
            Some(service) if index > 0 => {
                let added = Duration::from_nanos(row.from_ns - service);
                format!("  + {added}")
            }
            Some(service) => Duration::from_nanos(service).to_string(),
            None => short_time(row.from_ns),
        }
    }
}

fn write_cells(f: &mut fmt::Formatter<'_>, title: &str, cells: &[String; 5]) -> fmt::Result {
    let [n, mean, p50, p99, max] = cells;
    let line = format!("{title:<9} {n:>12} {mean:>13} {p50:>13} {p99:>13} {max:>13}");
    writeln!(f, "{}", line.trim_end())
}

/// A count and its share of the longest bar, rounded up: what is there is seen.
fn write_bar(f: &mut fmt::Formatter<'_>, count: u64, longest: u64) -> fmt::Result {
    let columns = BAR_WIDTH as u128 * u128::from(count);
    let length = columns.div_ceil(u128::from(longest.max(1))) as usize;
    let bar = "#".repeat(length);
    write!(f, "{count:>9} |{bar:<BAR_WIDTH$}|")
}

fn write_wrapped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    writeln!(f, "{}", wrapped(text, WIDTH))
}

/// Words in lines of at most so many columns; those after the first are indented.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines += &(line + "\n");
            line = " ".to_owned();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines + &line
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_wrapped(f, &self.title())?;
        write_wrapped(f, &format!("{}: {}", self.verdict, self.why))?;
        for warning in &self.warnings {
            write_wrapped(f, &format!("warning: {warning}"))?;
        }
        write_wrapped(f, &self.counts())?;
        if self.rows.is_empty() {
            return Ok(());
        }
        writeln!(f)?;
        self.write_figures(f)?;
        self.write_rows(f)
    }
}

#[cfg(test)]
mod tests;
