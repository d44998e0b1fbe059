//! Proof of injection: the requested and the achieved latencies of a rule, their difference, and whether the
//! difference is within the caller's tolerance.
//!
//! The figures cover only zios that the rule held. The requested time of a zio is its service time. The
//! achieved time lasts from the end of the zio's wait for a lane until the shard offers its reply.
//! If the rule's delay is constant, the percentiles are as exact as the buckets of lateness. If it varies,
//! they are exact to 1.2 %. Means and extremes are exact.

mod causes;
mod figures;
mod rows;
mod verdict;

use std::fmt;

use dashpot_api::{Rule, RuleState};
use dashpot_engine::Duration;
use dashpot_rules::short_time;
use serde::Serialize;

use crate::table::{WIDTH, wrapped};
use figures::{Cells, Error, Figures, Resolution, between_the_ends, exact_time};
use rows::Row;
pub use verdict::{Facts, Tolerance, Verdict};

const BAR_WIDTH: usize = 20;

/// The proof of one rule. JSON: `{"rule": as `list` has it, "verdict": "kept" | "not-kept" |
/// "cannot-tell" | "unproven", "as_asked": true, "why": text, "warnings": [text, …], "tolerance":
/// {"p50_ns": 500000, "p99_ns": 40000000, "n": 30}, "promise": {"lateness_ns": 30500, "kept":
/// true}, "client_ns": 12000, "stopped": 0, "requested": figures, "achieved": figures, "error":
/// {"mean_ns": 14200, "p50_ns": …, "p90_ns": …, "p99_ns": …, "mean_percent": 0.14, …}, "lateness":
/// figures, "resolution": null | {"p50_ns": 129000, "p99_ns": 237000}, "rows": [{"from_ns":
/// 10000000, "to_ns": 10000999, "requested": 1000, "achieved": 0}, …]}`, with figures as `{"n": 1000,
/// "mean_ns": …, "p50_ns": …, "p90_ns": …, "p99_ns": …, "max_ns": …}`. A row includes both of its ends.
/// Unknown figures are null.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// The rule, as the API has it.
    pub rule: Rule,
    /// Whether the rule was kept.
    pub verdict: Verdict,
    /// Whether the rule did what it says, however late.
    as_asked: bool,
    /// The verdict's reason.
    pub why: String,
    /// Sentences about distortions of the figures and about other useful facts.
    pub warnings: Vec<String>,
    tolerance: Limits,
    promise: Promise,
    /// How much time, on average, clients added to an I/O by sending the request and reading the reply.
    client_ns: u64,
    /// The number of zios that fell due while the host kept the shard from running.
    stopped: u64,
    requested: Figures,
    achieved: Figures,
    error: Error,
    lateness: Figures,
    /// The precision of the percentiles; null if all delays were equal, so that they are exact.
    resolution: Option<Resolution>,
    rows: Vec<Row>,
    /// The service time, if all zios had the same service time.
    #[serde(skip)]
    constant_ns: Option<u64>,
}

/// The largest error that the rule may have, and the least number of zios that it must have held.
#[derive(Clone, Debug, Serialize)]
struct Limits {
    p50_ns: u64,
    p99_ns: u64,
    n: u64,
}

/// dashpot's own promise on this host. The promise does not affect the verdict.
#[derive(Clone, Debug, Serialize)]
struct Promise {
    /// The median lateness.
    lateness_ns: u64,
    kept: Option<bool>,
}

impl Proof {
    /// Judges a rule.
    pub fn of(facts: &Facts<'_>) -> Proof {
        let requested = Figures::of(facts.requested);
        let lateness = Figures::of(facts.lateness);
        let constant_ns = rows::constant(facts.requested);
        let achieved = match constant_ns {
            Some(service) => Figures::of(facts.achieved).at_percentiles_of(&lateness, service),
            None => Figures::of(facts.achieved),
        };
        let error = Error::between(&requested, &achieved);
        let judgement = facts.judge(&error);
        let (p50_ns, p99_ns) = facts.limits();
        Proof {
            rule: facts.rule.clone(),
            verdict: judgement.verdict,
            as_asked: judgement.as_asked,
            why: judgement.why,
            warnings: facts.warnings(judgement.verdict),
            tolerance: Limits {
                p50_ns,
                p99_ns,
                n: facts.min(),
            },
            promise: Promise::of(facts, &lateness),
            client_ns: facts.outside_ns,
            stopped: facts.stopped.count(),
            error,
            resolution: match constant_ns {
                Some(_) => None,
                None => Some(Resolution::of(&requested)),
            },
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

    /// The outcomes of the matching zios. The text mentions rare outcomes only if they occurred.
    fn counts(&self) -> String {
        let counters = self.rule.present();
        let rare = [
            ("failed", counters.failed),
            ("not drawn", counters.not_drawn),
            ("not counted", counters.not_counted),
            ("beaten", counters.beaten),
            ("damaged", counters.damaged),
            ("spared", counters.spared),
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
        let is_updated = self.rule.since_update.is_some();
        let begun = if is_updated { "updated" } else { "armed" };
        let life = match self.rule.state {
            RuleState::Cleared if is_updated => {
                format!("updated {age} before it was cleared")
            }
            RuleState::Cleared => format!("armed for {age}, cleared since"),
            _ => format!("{begun} {age} ago"),
        };
        format!("{life}: {}", words.join(", "))
    }

    /// The counts from before the last update, which the verdict ignores.
    fn before_update(&self) -> Option<String> {
        let (all, since) = (&self.rule.counters, self.rule.since_update.as_ref()?);
        let matched = all.matched.saturating_sub(since.matched);
        let held = all.held.saturating_sub(since.held);
        let now = match all.now.saturating_sub(since.now) {
            0 => String::new(),
            now => format!(", {now} held now"),
        };
        Some(format!(
            "before the update: matched {matched}, held {held}{now}: not counted here"
        ))
    }

    fn write_figures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = ["n", "mean", "p50", "p90", "p99", "max"].map(str::to_owned);
        write_cells(f, "", &titles)?;
        write_cells(f, "requested", &self.requested.cells(exact_time))?;
        write_cells(f, "achieved", &self.achieved.cells(exact_time))?;
        write_cells(f, "error", &self.error.cells())?;
        write_cells(f, "of delay", &self.error.share_cells())?;
        write_cells(f, "at most", &self.tolerance.cells())?;
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

    /// Writes the verdict and the warnings.
    fn write_reasons(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_wrapped(f, &format!("{}: {}", self.verdict, self.why))?;
        let counters = self.rule.present();
        // An error with a delay holds what it fails.
        let (held, matched) = (counters.held + counters.failed, counters.matched);
        if !self.rows.is_empty() {
            let asked = if self.as_asked { "yes" } else { "no" };
            write_wrapped(
                f,
                &format!("injected as asked: {asked}, held {held} of {matched} that matched"),
            )?;
            let resolution = self.resolution.as_ref();
            if let Some(line) = resolution.and_then(|known| known.line(&self.error)) {
                write_wrapped(f, &line)?;
            }
            write_wrapped(f, &self.promise.words())?;
            let client = short_time(self.client_ns);
            write_wrapped(
                f,
                &format!(
                    "clients: {client} on average to send a request and take its reply, since the \
                     daemon's start"
                ),
            )?;
        }
        self.warnings
            .iter()
            .try_for_each(|warning| write_wrapped(f, &format!("warning: {warning}")))
    }

    /// The verdict in a sentence.
    pub fn summary(&self) -> String {
        let Rule { id, disk, rule, .. } = &self.rule;
        let name = self.rule.name.as_deref();
        let name = name.map_or_else(
            || format!("rule {id}"),
            |name| format!("rule {id} ({name})"),
        );
        let counters = self.rule.present();
        let (held, failed) = (counters.held, counters.failed);
        let done = match failed {
            0 => format!("held {held}"),
            _ => format!("failed {failed}"),
        };
        let matched = counters.matched;
        format!(
            "{name} on {disk}, {rule}: {done} of {matched}: {}: {}",
            self.verdict, self.why
        )
    }

    /// The label of a row. For a constant delay, the first label is the delay, and the others say by how much
    /// the rows' latencies exceed it.
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

impl Limits {
    fn cells(&self) -> Cells {
        let [p50, p99] = [self.p50_ns, self.p99_ns].map(|ns| format!("+{}", short_time(ns)));
        between_the_ends([String::new(), p50, String::new(), p99])
    }
}

impl Promise {
    fn words(&self) -> String {
        let kept = match self.kept {
            Some(true) => "kept",
            Some(false) => "not kept",
            None => "too few to tell",
        };
        let lateness = short_time(self.lateness_ns);
        format!("dashpot's promise of {lateness} at p50: {kept} (not part of the verdict)")
    }

    fn of(facts: &Facts<'_>, lateness: &Figures) -> Promise {
        let lateness_ns = facts.promised_lateness();
        Promise {
            lateness_ns,
            kept: lateness.p50_ns.map(|late| late <= lateness_ns),
        }
    }
}

fn write_cells(f: &mut fmt::Formatter<'_>, title: &str, cells: &Cells) -> fmt::Result {
    let [n, mean, p50, p90, p99, max] = cells;
    let line = format!("{title:<9} {n:>9} {mean:>11} {p50:>11} {p90:>11} {p99:>11} {max:>11}");
    writeln!(f, "{}", line.trim_end())
}

/// Writes a count and its bar. Lengths are relative to the longest bar, and rounded up so that every count
/// has a mark.
fn write_bar(f: &mut fmt::Formatter<'_>, count: u64, longest: u64) -> fmt::Result {
    let columns = BAR_WIDTH as u128 * u128::from(count);
    let length = columns.div_ceil(u128::from(longest.max(1))) as usize;
    let bar = "#".repeat(length);
    write!(f, "{count:>9} |{bar:<BAR_WIDTH$}|")
}

fn write_wrapped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    writeln!(f, "{}", wrapped(text, WIDTH))
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_wrapped(f, &self.title())?;
        write_wrapped(f, &self.counts())?;
        if let Some(before) = self.before_update() {
            write_wrapped(f, &before)?;
        }
        if !self.rows.is_empty() {
            writeln!(f)?;
            self.write_figures(f)?;
            self.write_rows(f)?;
            writeln!(f)?;
        }
        self.write_reasons(f)
    }
}

#[cfg(test)]
mod tests;
