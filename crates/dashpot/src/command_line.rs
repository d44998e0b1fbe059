//! The command line: all commands. `dashpot_cli` has their options, and `dashpot_report` those of reports.

use std::borrow::Cow;
use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};
use dashpot_cli::{
    AttachArgs, CheckArgs, ClearArgs, CompletionsArgs, CrashArgs, DetachArgs, DiffArgs,
    DmsetupArgs, DoctorArgs, FaultsArgs, GetArgs, InflightArgs, InjectArgs, InstallArgs, ListArgs,
    LoadArgs, ManArgs, MountArgs, ProofArgs, RecordArgs, RenewArgs, ResetArgs, ResumeArgs, RunArgs,
    ScenarioArgs, ServeArgs, SetArgs, StatsArgs, StatusArgs, StopArgs, SuspendArgs, TopArgs,
    UpdateArgs, ViewArgs, ZinjectArgs,
};
use dashpot_report::ReportKind;
use dashpot_rules::{ApiAddress, parse_api, spelled};

use crate::sim::SimArgs;

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

    /// The command.
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
pub(crate) fn is_run(words: impl Iterator<Item = OsString>) -> bool {
    let lenient = Cli::command().ignore_errors(true);
    let matches = lenient.try_get_matches_from(words);
    matches.is_ok_and(|matches| matches.subcommand_name() == Some("run"))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(RunArgs),
    Serve(ServeArgs),
    Stop(StopArgs),
    Status(StatusArgs),
    Inject(InjectArgs),
    Update(UpdateArgs),
    Renew(RenewArgs),
    List(ListArgs),
    Proof(ProofArgs),
    Check(CheckArgs),
    Clear(ClearArgs),
    Scenario(ScenarioArgs),
    Reset(ResetArgs),
    Suspend(SuspendArgs),
    Resume(ResumeArgs),
    Crash(CrashArgs),
    Faults(FaultsArgs),
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
