//! The command line: the commands, their options, and their help.
//!
//! This module has only definitions. [`dashpot_rules`] parses the values, so a wrong value ends the
//! program here, with usage and exit code 2. Only `zinject` parses its own words, because clap
//! cannot express its grammar.

// Doc comments here are the help that clap prints. `[1]` is a default, not a link.
#![allow(rustdoc::broken_intra_doc_links)]

mod attach;
mod check;
mod control;
mod diff;
mod dmsetup;
mod generate;
mod inflight;
mod lab;
mod load;
mod no_api;
mod page;
mod pool;
mod proof;
mod record;
pub(crate) mod reports;
mod rule;
mod sim;
mod stats;
mod top;
mod when;
mod words;
mod zinject;

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use dashpot_rules::{ApiAddress, parse_api};

use self::reports::ReportKind;

pub(crate) use attach::{AttachArgs, DetachArgs, FileSystem, MountArgs, With};
pub(crate) use check::CheckArgs;
pub(crate) use control::{
    ClearArgs, CrashArgs, DoctorArgs, InjectArgs, ListArgs, ResetArgs, ResumeArgs, StatusArgs,
    SuspendArgs, UpdateArgs,
};
pub(crate) use diff::DiffArgs;
pub(crate) use dmsetup::{DmAction, DmsetupArgs, TableArgs};
pub(crate) use generate::{CompletionsArgs, InstallArgs, ManArgs};
pub(crate) use inflight::InflightArgs;
pub(crate) use lab::{AttachedArgs, LabArgs, OnLoss, RunArgs, ServeArgs, SpinWhen, UringWord};
pub(crate) use load::LoadArgs;
pub(crate) use page::{PageArgs, Speed, ViewArgs};
pub(crate) use pool::{GetArgs, SetArgs};
pub(crate) use proof::ProofArgs;
pub(crate) use record::{BackgroundArgs, CutArgs, KeepArgs, RecordArgs, RecordCommand, ShowArgs};
pub(crate) use sim::{ReportWords, SimArgs};
pub(crate) use stats::StatsArgs;
pub(crate) use top::TopArgs;
pub(crate) use when::{Between, When, shown_moment};
pub(crate) use words::each_once;
pub(crate) use zinject::{ZinjectArgs, zinject_help, zinject_usage};

/// A slow disk you control, and a microscope for storage latency.
#[derive(Debug, Parser)]
#[command(
    name = "dashpot",
    version,
    max_term_width = 80,
    arg_required_else_help = true
)]
#[command(after_help = "\
Example: a daemon with two disks, and a rule that slows one down
  dashpot serve &
  dashpot inject c1t1d0 -D 20ms~5ms -f 10%")]
pub(crate) struct Cli {
    /// Address of the daemon's API [env: DASHPOT_API]
    // With clap's own support for the environment, every usage line would show the option as if it
    // were required.
    #[arg(long, global = true, value_name = "ADDR", value_parser = parse_api)]
    pub(crate) api: Option<ApiAddress>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// The parsed command line. A mistake ends the program with exit code 2. A mistake in the words of `run`
    /// ends the program with `run_failed` instead, because callers would take 2 for the exit code of the
    /// command that `run` was to start.
    pub(crate) fn parse_or_exit(run_failed: u8) -> Cli {
        let error = match Cli::try_parse() {
            Ok(cli) => return cli,
            Err(error) => error,
        };
        if error.use_stderr() && is_run(std::env::args_os()) {
            // If no one reads stderr, the exit code alone must report the mistake.
            let _ = error.print();
            std::process::exit(i32::from(run_failed));
        }
        error.exit()
    }
}

/// Whether the words are those of `run`, even if they have mistakes.
pub(crate) fn is_run(words: impl Iterator<Item = OsString>) -> bool {
    let lenient = Cli::command().ignore_errors(true);
    let matches = lenient.try_get_matches_from(words);
    matches.is_ok_and(|matches| matches.subcommand_name() == Some("run"))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Serve(ServeArgs),
    Status(StatusArgs),
    Inject(InjectArgs),
    Update(UpdateArgs),
    List(ListArgs),
    Proof(ProofArgs),
    Check(CheckArgs),
    Clear(ClearArgs),
    Reset(ResetArgs),
    Suspend(SuspendArgs),
    Resume(ResumeArgs),
    Crash(CrashArgs),
    Get(GetArgs),
    Set(SetArgs),
    Attach(AttachArgs),
    Detach(DetachArgs),
    Mount(MountArgs),
    Dmsetup(DmsetupArgs),
    #[command(flatten)]
    Report(ReportKind),
    Inflight(InflightArgs),
    Stats(StatsArgs),
    Record(RecordArgs),
    Diff(DiffArgs),
    View(ViewArgs),
    Top(TopArgs),
    Zinject(ZinjectArgs),
    Sim(SimArgs),
    Load(LoadArgs),
    Doctor(DoctorArgs),
    Man(ManArgs),
    Completions(CompletionsArgs),
    Install(InstallArgs),
    /// Print the version, and the C library in this program
    #[command(after_help = "Example:\n  dashpot version")]
    Version,
}

#[cfg(test)]
#[path = "help_tests.rs"]
mod tests;
