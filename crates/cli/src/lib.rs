//! The command line: the commands, their options, and their help.
//!
//! This crate has definitions and parsers: it runs no command. [`dashpot_rules`] parses the values, so a wrong value
//! ends the program here, with a message and exit code 2. Only `zinject` parses its own words, because clap
//! cannot express its grammar.
//!
//! A doc comment on an option or a command is its help. The variants of the enums of commands and of
//! words have none, because the help would show it.

// In help, `[1]` is a default, not a link.
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
pub mod reports;
mod rule;
mod sim;
mod stats;
mod top;
mod when;
mod words;
mod zinject;

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use dashpot_rules::{ApiAddress, parse_api, spelled};

use self::reports::ReportKind;

pub use attach::{AttachArgs, DetachArgs, FileSystem, MountArgs, With};
pub use check::CheckArgs;
pub use control::{
    ClearArgs, CrashArgs, DoctorArgs, InjectArgs, ListArgs, ResetArgs, ResumeArgs, StatusArgs,
    StopArgs, SuspendArgs, UpdateArgs,
};
pub use diff::DiffArgs;
pub use dmsetup::{DmAction, DmsetupArgs, TableArgs};
pub use generate::{CompletionsArgs, InstallArgs, ManArgs};
pub use inflight::InflightArgs;
pub use lab::{
    AttachedArgs, LabArgs, OnLoss, RunArgs, ServeArgs, ServiceArgs, SpinWhen, UringWord,
};
pub use load::LoadArgs;
pub use page::{PageArgs, Speed, ViewArgs};
pub use pool::{GetArgs, SetArgs};
pub use proof::ProofArgs;
pub use record::{BackgroundArgs, CutArgs, KeepArgs, RecordArgs, RecordCommand, ShowArgs};
pub use sim::{ReportWords, SimArgs};
pub use stats::StatsArgs;
pub use top::TopArgs;
pub use when::{Between, When};
pub use words::each_once;
pub use zinject::{ZinjectArgs, zinject_help, zinject_usage};

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
pub struct Cli {
    /// Address of the daemon's API [env: DASHPOT_API]
    // With clap's own support for the environment, every usage line would show the option as if it
    // were required.
    #[arg(long, global = true, value_name = "ADDR", value_parser = parse_api)]
    pub api: Option<ApiAddress>,

    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// The parsed command line. A mistake ends the program with exit code 2. A mistake in the words of `run`
    /// ends the program with `run_failed` instead, because callers would take 2 for the exit code of the
    /// command that `run` was to start.
    pub fn parse_or_exit(run_failed: u8) -> Cli {
        let error = match Cli::try_parse() {
            Ok(cli) => return cli,
            Err(error) => error,
        };
        let error = spelled_error(error);
        if error.use_stderr() && is_run(std::env::args_os()) {
            // If no one reads stderr, the exit code alone must report the mistake.
            let _ = error.print();
            std::process::exit(i32::from(run_failed));
        }
        error.exit()
    }
}

/// The error or the help in characters that the locale has.
fn spelled_error(error: clap::Error) -> clap::Error {
    let text = error.to_string();
    match spelled(&text) {
        Cow::Borrowed(_) => error,
        Cow::Owned(text) => {
            let prefix = "error: ";
            let text = text.strip_prefix(prefix).map(str::to_owned).unwrap_or(text);
            clap::Error::raw(error.kind(), text)
        }
    }
}

/// Whether the words are those of `run`, even if they have mistakes.
pub fn is_run(words: impl Iterator<Item = OsString>) -> bool {
    let lenient = Cli::command().ignore_errors(true);
    let matches = lenient.try_get_matches_from(words);
    matches.is_ok_and(|matches| matches.subcommand_name() == Some("run"))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    Run(RunArgs),
    Serve(ServeArgs),
    Stop(StopArgs),
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
