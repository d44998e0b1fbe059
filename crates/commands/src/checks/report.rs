//! The report of checks for pipelines: a summary in JSON, JUnit's XML, a page in Markdown, and the
//! annotations of a step on GitHub.

use std::fmt::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use dashpot_api::{DiskLatency, OpLatency, Rule, RuleState, Unheld, UnheldWay};
use dashpot_rules::short_time;
use dashpot_text::calls::interrupted;
use dashpot_text::rule::forgotten;
use serde::Serialize;

use super::judge::Outcome;

/// A command that has ended, or no command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ran {
    /// The words of the command; empty if there was none.
    pub(crate) command: Vec<String>,
    /// The exit status; `None` if there was no command.
    pub(crate) status: Option<u8>,
    /// How long the command ran; `None` if there was none.
    pub(crate) lasted: Option<Duration>,
}

impl Ran {
    fn succeeded(&self) -> bool {
        self.status.is_none_or(|status| status == 0)
    }

    /// The exit status of a program that passes on that of the command.
    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(self.status.unwrap_or(0))
    }
}

/// Everything that a report says. A reader of the JSON first looks at `schema`. A release may add fields
/// without a change of `schema`. A release that removes a field, or changes what a field means, raises
/// `schema`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema: u32,
    dashpot: &'static str,
    /// The words of the command; empty if there is no command.
    command: Vec<String>,
    succeeded: bool,
    /// The exit status of the command; null if there is no command.
    status: Option<u8>,
    /// How long the command ran; null if there is no command.
    duration_ns: Option<u64>,
    checks: Vec<Outcome>,
    rules: Vec<Injected>,
    /// How many cleared rules are missing from `rules`, because the daemon remembers only those that were cleared
    /// last.
    rules_forgotten: u64,
    /// The accesses to each path disk that no rule could hold.
    unheld: Vec<OfDisk>,
    disks: Vec<Ended>,
}

/// The accesses to a path disk that no rule could hold.
#[derive(Debug, Serialize)]
struct OfDisk {
    disk: String,
    #[serde(flatten)]
    unheld: Unheld,
    /// How many calls a signal ended before dashpot received them or before their hold was over; null if the
    /// kernel does not tell.
    interrupted: Option<u64>,
}

/// A rule that was armed when the command ended, or that was cleared before.
#[derive(Debug, Serialize)]
struct Injected {
    id: u32,
    name: Option<String>,
    disk: String,
    rule: String,
    /// Whether the rule was cleared before the end. Its counters are those of that moment.
    cleared: bool,
    matched: u64,
    injected: u64,
    held: u64,
    overrun: u64,
    late: u64,
    failed: u64,
    damaged: u64,
    why_nothing: Option<String>,
}

/// The I/Os of one operation that have ended on a disk since the daemon began to serve the disk.
#[derive(Debug, Serialize)]
struct Ended {
    disk: String,
    op: String,
    n: u64,
    failed: u64,
    p50_ns: Option<u64>,
    p99_ns: Option<u64>,
    max_ns: Option<u64>,
}

impl Report {
    pub(crate) fn new(
        ran: &Ran,
        checks: &[Outcome],
        (rules, rules_forgotten): (Vec<Rule>, u64),
        disks: &[(String, DiskLatency)],
    ) -> anyhow::Result<Report> {
        let ops = disks
            .iter()
            .flat_map(|(disk, latency)| latency.ops.iter().map(move |op| (disk, op)));
        let ended = ops.filter(|(_, op)| op.completed > 0);
        let unheld = disks.iter().filter_map(|(disk, latency)| {
            Some(OfDisk {
                disk: disk.clone(),
                unheld: latency.unheld.clone()?,
                interrupted: latency.interrupted,
            })
        });
        Ok(Report {
            schema: SCHEMA,
            dashpot: env!("CARGO_PKG_VERSION"),
            command: ran.command.clone(),
            succeeded: ran.succeeded(),
            status: ran.status,
            duration_ns: ran.lasted.map(|lasted| lasted.as_nanos() as u64),
            checks: checks.to_vec(),
            rules: rules.into_iter().map(Injected::from).collect(),
            rules_forgotten,
            unheld: unheld.collect(),
            disks: ended
                .map(|(disk, op)| Ended::of(disk, op))
                .collect::<Result<_, _>>()?,
        })
    }

    /// JUnit's XML, with a test case for the command, for each check, for each rule, and for each kind of access
    /// that no rule could hold. The case of a rule that injected nothing counts as skipped, with the reason, and
    /// so does that of such an access, with the remedy.
    pub(crate) fn junit(&self) -> String {
        let mut cases = Vec::new();
        if let Some(status) = self.status {
            let ended = format!("the command ended with status {status}");
            let inside = verdict(self.succeeded, &ended);
            cases.push(case_of(
                "command",
                &self.command.join(" "),
                &inside,
                &self.time(),
            ));
        }
        for check in &self.checks {
            let inside = verdict(check.holds, check.observed());
            cases.push(case("check", check.text(), &inside));
        }
        for rule in &self.rules {
            let inside = match &rule.why_nothing {
                Some(why) => skipped(why),
                None => said(&rule.counts()),
            };
            cases.push(case("rule", &rule.title(), &inside));
        }
        for (disk, way) in self.ways() {
            let inside = skipped(&format!("{}: {}", way.said, way.remedy));
            cases.push(case("unheld", &format!("{disk}: {}", way.way), &inside));
        }
        for (disk, said) in self.interrupted() {
            cases.push(case(
                "unheld",
                &format!("{disk}: interrupted"),
                &skipped(&said),
            ));
        }
        if let Some(said) = self.forgotten() {
            cases.push(case("rule", "forgotten", &skipped(&said)));
        }
        let failures = cases
            .iter()
            .filter(|case| case.contains("<failure"))
            .count();
        let skipped = cases
            .iter()
            .filter(|case| case.contains("<skipped"))
            .count();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"dashpot\" tests=\"{}\" \
             failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"{}>\n{}</testsuite>\n</testsuites>\n",
            cases.len(),
            self.time(),
            cases.concat()
        )
    }

    /// The attribute of XML for the time that the command took; empty if there was no command.
    fn time(&self) -> String {
        let seconds = |ns| format!(" time=\"{:.3}\"", ns as f64 / 1e9);
        self.duration_ns.map_or_else(String::new, seconds)
    }

    /// The kinds of access that no rule could hold, each with its disk.
    fn ways(&self) -> impl Iterator<Item = (&str, &UnheldWay)> {
        self.unheld
            .iter()
            .flat_map(|of| of.unheld.ways.iter().map(|way| (of.disk.as_str(), way)))
    }

    /// For each path disk with such calls, a sentence about the calls that signals ended.
    fn interrupted(&self) -> impl Iterator<Item = (&str, String)> {
        let said = |of: &OfDisk| of.interrupted.and_then(interrupted);
        self.unheld
            .iter()
            .filter_map(move |of| Some((of.disk.as_str(), said(of)?)))
    }

    /// A sentence about the cleared rules that are missing.
    fn forgotten(&self) -> Option<String> {
        let count = self.rules_forgotten;
        (count > 0).then(|| forgotten(count))
    }

    /// A page in Markdown, small enough for GitHub's summary of a step.
    pub(crate) fn markdown(&self) -> String {
        let mut page = "## dashpot\n".to_owned();
        if !self.command.is_empty() {
            let ended = match (self.succeeded, self.status) {
                (false, Some(status)) => format!("**failed** with status {status}"),
                _ => "succeeded".to_owned(),
            };
            let took = self
                .duration_ns
                .map_or_else(String::new, |ns| format!(" after {}", short_time(ns)));
            let _ = writeln!(page, "\n{} {ended}{took}.", code(&self.command.join(" ")));
        }
        let checks = self.checks.iter().map(|check| {
            let verdict = if check.holds { "ok" } else { "**FAIL**" };
            vec![
                verdict.to_owned(),
                code(check.text()),
                cell(check.observed()),
            ]
        });
        page += &table(&["", "check", "observed"], checks);
        let rules = self.rules.iter().map(|rule| {
            let why = rule.why_nothing.clone();
            let effect = why.unwrap_or_else(|| rule.counts());
            let cleared = if rule.cleared { " (cleared)" } else { "" };
            let words = format!("{}{cleared}", code(&rule.rule));
            vec![cell(&rule.disk), words, cell(&effect)]
        });
        page += &table(&["disk", "rule", "what it did"], rules);
        if let Some(said) = self.forgotten() {
            let _ = writeln!(page, "\n{}", cell(&said));
        }
        let ways = self
            .ways()
            .map(|(disk, way)| vec![cell(disk), cell(&way.said), cell(&way.remedy)]);
        let signalled = self
            .interrupted()
            .map(|(disk, said)| vec![cell(disk), cell(&said), "-".to_owned()]);
        let ways = ways.chain(signalled);
        page += &table(&["disk", "not held", "remedy"], ways);
        let disks = self.disks.iter().map(|ended| {
            let time = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), short_time);
            let (n, failed) = (ended.n.to_string(), ended.failed.to_string());
            let times = [ended.p50_ns, ended.p99_ns, ended.max_ns].map(time);
            [
                vec![cell(&ended.disk), cell(&ended.op), n, failed],
                times.to_vec(),
            ]
            .concat()
        });
        page += &table(&["disk", "op", "n", "failed", "p50", "p99", "max"], disks);
        cut(page)
    }

    /// The lines that become annotations of a step on GitHub, which shows ten and silently drops
    /// the others.
    pub(crate) fn annotations(&self) -> Vec<String> {
        let failed: Vec<&Outcome> = self.checks.iter().filter(|check| !check.holds).collect();
        let shown = if failed.len() > ANNOTATIONS {
            ANNOTATIONS - 1
        } else {
            failed.len()
        };
        let line = |text: &str| format!("::error title=dashpot check::{}", escaped(text));
        let mut lines: Vec<String> = failed[..shown]
            .iter()
            .map(|check| line(&format!("{}: {}", check.text(), check.observed())))
            .collect();
        if failed.len() > shown {
            let more = failed.len() - shown;
            lines.push(line(&format!(
                "{more} more checks do not hold: see report.md"
            )));
        }
        lines
    }
}

impl From<Rule> for Injected {
    fn from(rule: Rule) -> Injected {
        let counters = rule.counters;
        Injected {
            id: rule.id,
            name: rule.name,
            disk: rule.disk,
            rule: rule.rule,
            cleared: rule.state == RuleState::Cleared,
            matched: counters.matched,
            injected: counters.injected,
            held: counters.held,
            overrun: counters.overrun,
            late: counters.late,
            failed: counters.failed,
            damaged: counters.damaged,
            why_nothing: rule.why_nothing,
        }
    }
}

/// The effect of a rule, in a line: `rule on wal: -D 20ms -T sync (slow): matched 5, held 3`.
pub(crate) fn effect(rule: &Rule) -> String {
    let counters = &rule.counters;
    let title = Injected::from(rule.clone()).title();
    match &rule.why_nothing {
        Some(why) => format!("rule on {title}: injected nothing: {why}"),
        None => {
            let did = [
                (counters.held, "held"),
                (counters.failed, "failed"),
                (counters.damaged, "damaged"),
                (counters.spared, "spared"),
                (counters.overrun, "overrun"),
                (counters.aborted, "aborted"),
                (counters.now, "holds"),
            ];
            let did = did.iter().filter(|(count, _)| *count > 0);
            let did = did.map(|(count, what)| format!(", {what} {count}"));
            format!(
                "rule on {title}: matched {}{}",
                counters.matched,
                did.collect::<String>()
            )
        }
    }
}

impl Injected {
    fn title(&self) -> String {
        let name = self
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!(" ({name})"));
        let cleared = if self.cleared { " (cleared)" } else { "" };
        format!("{}: {}{name}{cleared}", self.disk, self.rule)
    }

    fn counts(&self) -> String {
        format!(
            "matched {}, injected {}, held {}, overrun {}, late {}, failed {}",
            self.matched, self.injected, self.held, self.overrun, self.late, self.failed
        )
    }
}

impl Ended {
    fn of(disk: &str, op: &OpLatency) -> anyhow::Result<Ended> {
        let latency = op.disk.histogram().context("the daemon's histogram")?;
        Ok(Ended {
            disk: disk.to_owned(),
            op: op.op.clone(),
            n: op.completed,
            failed: op.failed,
            p50_ns: latency.quantile(500_000),
            p99_ns: latency.quantile(990_000),
            max_ns: latency.max(),
        })
    }
}

fn case(kind: &str, name: &str, inside: &str) -> String {
    case_of(kind, name, inside, "")
}

/// A test case with more attributes, in XML.
fn case_of(kind: &str, name: &str, inside: &str, attributes: &str) -> String {
    let name = xml(name);
    format!(
        "<testcase classname=\"dashpot.{kind}\" name=\"{name}\"{attributes}>{inside}</testcase>\n"
    )
}

fn skipped(message: &str) -> String {
    format!("<skipped message=\"{}\"/>", xml(message))
}

fn failure(message: &str) -> String {
    format!("<failure message=\"{}\"/>", xml(message))
}

/// The inside of a case that holds, or does not.
fn verdict(holds: bool, text: &str) -> String {
    if holds { said(text) } else { failure(text) }
}

fn said(text: &str) -> String {
    format!("<system-out>{}</system-out>", xml(text))
}

/// Escapes text for XML, which allows no control characters.
fn xml(text: &str) -> String {
    let each = text.chars().map(|letter| match letter {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        letter if letter.is_control() || "\u{fffe}\u{ffff}".contains(letter) => {
            "\u{fffd}".to_owned()
        }
        letter => letter.to_string(),
    });
    each.collect()
}

/// A table in Markdown; an empty text if there are no rows.
fn table(heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let lines: Vec<String> = rows
        .map(|row| format!("| {} |\n", row.join(" | ")))
        .collect();
    if lines.is_empty() {
        String::new()
    } else {
        format!(
            "\n| {} |\n|{}\n{}",
            heads.join(" | "),
            "---|".repeat(heads.len()),
            lines.concat()
        )
    }
}

/// Text in a cell, escaped so that no character has a meaning in Markdown.
fn cell(text: &str) -> String {
    let each = text.chars().map(|letter| match letter {
        '|' | '*' | '_' | '`' | '<' | '[' | '\\' | '#' => format!("\\{letter}"),
        letter if letter.is_control() => " ".to_owned(),
        letter => letter.to_string(),
    });
    each.collect()
}

/// Text as code in a cell.
fn code(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|letter| {
            if letter.is_control() || letter == '`' {
                ' '
            } else {
                letter
            }
        })
        .collect();
    format!("`{}`", plain.replace('|', "\\|"))
}

/// The page, or as many of its lines as fit into a summary.
fn cut(page: String) -> String {
    if page.len() <= PAGE_MOST {
        return page;
    }
    let is_boundary = |end: &usize| page.is_char_boundary(*end);
    let end = (0..=PAGE_MOST).rev().find(is_boundary).unwrap_or(0);
    let whole = page[..end].rfind('\n').unwrap_or(0);
    format!(
        "{}\n\nThe rest did not fit: see summary.json.\n",
        &page[..whole]
    )
}

/// Escapes the data of a workflow command, so that it stays on one line.
fn escaped(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The version of the JSON.
const SCHEMA: u32 = 1;
/// The maximum number of annotations that GitHub shows for a step.
const ANNOTATIONS: usize = 10;
/// The size limit of a page, in bytes. GitHub allows 1 MiB for the summary of a step.
const PAGE_MOST: usize = 1_000_000;

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
