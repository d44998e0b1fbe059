//! `sim`: simulates labs under a virtual clock, and reports on them.

// In help, `[1]` is a default and no link.
#![allow(rustdoc::broken_intra_doc_links)]

use std::path::PathBuf;

use clap::error::ErrorKind;
use clap::{Args, Parser};
use dashpot_cli::{NoApi, PageArgs, Speed, parse_speed};
use dashpot_engine::Duration;
use dashpot_report::ReportKind;
use dashpot_rules::{ParseError, parse_seed, parse_span, parse_wait};

/// Simulate labs: hours of disk time in seconds, repeatably
#[derive(Args, Debug)]
#[command(after_help = "\
A report is one of those below, with its options, over the simulated time:
  iolatency, iostat, quantize, heatmap, snoop
                                as the commands; --layer volume, disk or store
  observe [DISK]... [interval [count]]
                                as the command, of simulated disks
  zpool-iostat [-l|-q|-w|-r] [POOL]... [interval [count]]
  amplification [POOL]... [interval [count]]
  txgs [POOL]                   the last 100 transaction groups, at the end
--report 'txgs --help' has a report's own options.

Example: two throttles beside each other, in numbers and in a picture
  dashpot sim legacy.toml openzfs.toml --chart .
Example: the queues of the pools, second by second
  dashpot sim lab.toml --report 'zpool-iostat -q 1' --report txgs")]
pub(crate) struct SimArgs {
    /// Lab files; several are compared
    #[arg(required_unless_present_any = ["swarm", "tunables"], value_name = "LAB")]
    pub(crate) labs: Vec<PathBuf>,
    /// Simulate this long, instead of the lab's time [60s]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) lasts: Option<Duration>,
    /// Ignore calls before this time [the lab's; else 0s]
    #[arg(long, value_name = "TIME", value_parser = parse_wait)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) warmup: Option<Duration>,
    /// Seed of all draws, instead of the lab's [1]
    #[arg(long, value_name = "N", value_parser = parse_seed)]
    pub(crate) seed: Option<u64>,
    /// A scenario and its disks: 'fail-slow c1t1d0'
    #[arg(long, value_name = "WORDS", value_parser = parse_words)]
    pub(crate) scenario: Option<ScenarioWords>,
    /// A report in place of the summary; may be repeated
    #[arg(long = "report", value_name = "WORDS", value_parser = parse_report)]
    pub(crate) reports: Vec<ReportWords>,
    /// Write a line for each zio of one lab to this file
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) events: Option<PathBuf>,
    /// Write latency*.svg and series.svg to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) chart: Option<PathBuf>,
    /// Check contents and invariants at every step (slow)
    #[arg(long)]
    pub(crate) check: bool,
    /// Simulate and check this many random labs instead
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with_all = ["labs", "lasts", "warmup", "scenario", "reports", "events", "chart", "check", "json"])]
    pub(crate) swarm: Option<u64>,
    /// List the tunables of a lab's [pool.NAME] instead
    #[arg(long)]
    #[arg(conflicts_with_all = ["labs", "lasts", "warmup", "seed", "scenario", "reports", "events", "chart", "check", "swarm"])]
    pub(crate) tunables: bool,
    /// Show one lab in the browser, until Ctrl-C
    #[arg(long)]
    #[arg(conflicts_with_all = ["reports", "events", "chart", "swarm", "tunables", "json"])]
    pub(crate) page: bool,
    /// Multiple of the wall clock's speed, or max [1]
    #[arg(long, value_name = "FACTOR", value_parser = parse_speed, requires = "page")]
    pub(crate) speed: Option<Speed>,
    /// The address and the host names of the page.
    #[command(flatten)]
    pub(crate) page_at: PageArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    _no_api: NoApi,
}

/// A scenario, and the disks on which it is made.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioWords {
    /// The file or the name of the scenario.
    pub(crate) name: String,
    pub(crate) disks: Vec<String>,
}

/// A report, with the words that ask for it on the command line.
#[derive(Clone, Debug)]
pub(crate) struct ReportWords {
    /// The words that the user typed for the report.
    pub(crate) words: String,
    /// The report, and its options.
    pub(crate) kind: ReportKind,
}

/// A parser for the words of a report in one string.
#[derive(Parser)]
#[command(
    name = "--report",
    no_binary_name = true,
    max_term_width = 80,
    disable_help_subcommand = true
)]
struct Report {
    #[command(subcommand)]
    kind: ReportKind,
}

fn parse_words(text: &str) -> Result<ScenarioWords, ParseError> {
    let words = shlex::split(text);
    let mut words = words.into_iter().flatten();
    let Some(name) = words.next() else {
        return Err(ParseError::new(
            "no scenario is named: 'dashpot scenario list' shows them",
        ));
    };
    Ok(ScenarioWords {
        name,
        disks: words.collect(),
    })
}

/// Parses a report and its options from one string.
fn parse_report(text: &str) -> Result<ReportWords, ParseError> {
    let words = shlex::split(text)
        .ok_or_else(|| ParseError::new(format!("'{text}' has a quote that does not end")))?;
    let report = Report::try_parse_from(words).map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp => error.exit(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => ParseError::new(format!(
            "no report is named: give one of {}",
            ReportKind::names().join(", ")
        )),
        _ => ParseError::new(first_line(&error.to_string())),
    })?;
    Ok(ReportWords {
        words: text.to_owned(),
        kind: report.kind,
    })
}

/// The first line of an error message. clap's usage lines below it would name a command that does not exist.
fn first_line(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
