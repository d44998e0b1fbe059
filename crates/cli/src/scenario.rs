//! `scenario`: rules in time.

use std::ffi::OsString;

use clap::{Args, Subcommand};
use dashpot_rules::{ParseError, parse_speed};

/// Run rules in time: a disk that gets slower, stalls, or dies
#[derive(Args, Debug)]
#[command(after_help = "\
A scenario is a file of steps, or the name of one that dashpot comes with. See
docs/scenarios.md for what a step can do.

Examples: the scenarios that there are; one as a file to copy; a file of yours
  dashpot scenario list
  dashpot scenario show brown-out
  dashpot scenario run my.toml c1t1d0 --speed 10 -- ./test.sh")]
pub struct ScenarioArgs {
    /// The command.
    #[command(subcommand)]
    pub command: ScenarioCommand,
}

/// The commands about scenarios.
#[derive(Debug, Subcommand)]
pub enum ScenarioCommand {
    Run(ScenarioRunArgs),
    List(ScenarioListArgs),
    Show(ScenarioShowArgs),
    Stop(ScenarioStopArgs),
}

/// Make the steps of a scenario on disks, and undo them at its end
#[derive(Args, Debug)]
#[command(after_help = "\
The scenario also ends when CMD ends, at Ctrl-C, at 'scenario stop' and 'reset',
and when a step fails. Then its rules are cleared, and what it suspended or cut
goes on; a tunable gets its old value unless someone else has set it since.

Example: a firmware that stalls, ten times as often, while a test runs
  dashpot scenario run firmware-stall c1t1d0 --speed 10 -- ./test.sh")]
pub struct ScenarioRunArgs {
    /// A file, or the name of a scenario that 'scenario list' shows
    #[arg(value_name = "FILE|NAME")]
    pub scenario: String,
    /// The disks; each step is made on one after the other
    #[arg(value_name = "DISK", required = true)]
    pub disks: Vec<String>,
    /// Make the steps this many times as fast; the times of rules stay [1]
    #[arg(long, value_name = "FACTOR", value_parser = parse_factor)]
    pub speed: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// End the scenario with this command
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// List the scenarios that dashpot comes with, and those that run
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot scenario list")]
pub struct ScenarioListArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Print the file of a scenario, to copy it
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot scenario show fail-slow")]
pub struct ScenarioShowArgs {
    /// The name of a scenario that 'scenario list' shows
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// Stop the scenario of a disk, and undo it
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot scenario stop c1t1d0")]
pub struct ScenarioStopArgs {
    /// The disk
    pub disk: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Checks a speed, which the daemon reads from the same words.
fn parse_factor(text: &str) -> Result<String, ParseError> {
    parse_speed(text)?;
    Ok(text.to_owned())
}
