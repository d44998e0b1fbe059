//! dashpot: a slow disk you control, and a microscope for storage latency.
//!
//! This crate is the program: it finds the command and runs it. It has the commands that print reports, and the
//! simulations. `dashpot_commands`, `dashpot_attach` and `dashpot_top` have the others.

mod command_line;
mod generate;
mod reports;
mod sim;

use std::process::ExitCode;

use clap::CommandFactory;
use dashpot_api::Client;
use dashpot_attach::attacher::become_attacher;
use dashpot_attach::become_guard;
use dashpot_cli::{InstallArgs, RecordArgs, RecordCommand};
use dashpot_commands::{FAILED, become_command, become_init, become_keeper};
use dashpot_export::complain;
use dashpot_output::is_broken_pipe;
use dashpot_rules::{ApiAddress, ParseError, choose_characters, parse_api};

use self::command_line::{Cli, Command, is_run};

fn main() -> ExitCode {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(std::env::var_os);
    choose_characters(locale.iter().flatten().map(|name| name.to_string_lossy()));
    let becomes = become_command().or_else(become_attacher);
    let becomes = becomes.or_else(become_keeper);
    let becomes = becomes.or_else(become_guard);
    if let Some(code) = becomes.or_else(|| become_init(is_run)) {
        return code;
    }
    match run(Cli::parse_or_exit(FAILED)) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("dashpot: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Runs the command, and returns the program's exit code.
fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    if let Command::Top(args) = &cli.command {
        dashpot_top::check_api(cli.api.as_ref(), args);
    }
    let api = match cli.command {
        // `run` has its own API, even if it inherits `DASHPOT_API`. A report on a recording needs no API.
        Command::Run(ref args) => args.api.clone().or(cli.api),
        Command::Report(ref kind) if reports::is_recorded(kind) => None,
        Command::Diff(_) | Command::Stats(_) | Command::Man(_) | Command::Completions(_) => None,
        Command::Record(ref args) if args.command.is_some() => None,
        _ => cli.api.or_else(api_from_environment),
    };
    let client = || Client::find(api.as_ref());
    match cli.command {
        Command::Run(args) => return Ok(dashpot_commands::run(&args, api.as_ref())),
        Command::Serve(args) => return dashpot_commands::serve(&args, api.as_ref()),
        Command::Stop(args) => dashpot_commands::stop(&client()?, &args)?,
        Command::Inject(args) => return dashpot_commands::inject(&client()?, &args),
        Command::Zinject(args) => {
            return dashpot_commands::zinject(client, Cli::command, &args);
        }
        Command::Sim(args) => return sim::sim(&args),
        Command::Status(args) => dashpot_commands::status(&client()?, &args)?,
        Command::Update(args) => dashpot_commands::update(&client()?, &args)?,
        Command::Renew(args) => dashpot_commands::renew(&client()?, &args)?,
        Command::Scenario(args) => return dashpot_commands::scenario(client, &args.command),
        Command::List(args) => dashpot_commands::list(&client()?, &args)?,
        Command::Check(args) => return dashpot_commands::check(&client()?, &args),
        Command::Proof(args) => return dashpot_commands::proof(&client()?, &args),
        Command::Clear(args) => dashpot_commands::clear(&client()?, &args)?,
        Command::Crash(args) => dashpot_commands::crash(&client()?, &args)?,
        Command::Faults(args) => dashpot_commands::faults(&client()?, &args)?,
        Command::Get(args) => dashpot_commands::get(&client()?, &args)?,
        Command::Set(args) => dashpot_commands::set(&client()?, &args)?,
        Command::Attach(args) => dashpot_attach::attach(&client()?, &args)?,
        Command::Mount(args) => dashpot_attach::mount(&client()?, &args)?,
        Command::Detach(args) => return dashpot_attach::detach(&client()?, &args),
        Command::Dmsetup(args) => dashpot_attach::dmsetup::dmsetup(&args)?,
        Command::Reset(args) => dashpot_commands::reset(&client()?, &args)?,
        Command::Suspend(args) => dashpot_commands::suspend(&client()?, &args)?,
        Command::Resume(args) => dashpot_commands::resume(&client()?, &args)?,
        Command::Report(kind) => reports::show(api.as_ref(), &kind)?,
        Command::Inflight(args) => dashpot_commands::inflight(api.as_ref(), &args)?,
        Command::Stats(args) => reports::stats(&args)?,
        Command::Record(args) => record(api.as_ref(), &args)?,
        Command::Diff(args) => reports::diff(&args)?,
        Command::View(args) => dashpot_commands::view(&args)?,
        Command::Load(args) => dashpot_commands::load(&args)?,
        Command::Doctor(args) => dashpot_commands::doctor(client().ok().as_ref(), &args)?,
        Command::Top(args) => return dashpot_top::top(api.as_ref(), &args),
        Command::Man(args) => generate::man(&args)?,
        Command::Install(args) => install(&args)?,
        Command::Version => dashpot_output::print(&dashpot_commands::version())?,
        Command::Completions(args) => {
            dashpot_output::print(&generate::completions(args.shell))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn record(api: Option<&ApiAddress>, args: &RecordArgs) -> anyhow::Result<()> {
    match &args.command {
        Some(RecordCommand::Cut(args)) => dashpot_commands::record::cut(args),
        Some(RecordCommand::Show(args)) => dashpot_commands::record::show(args),
        None => dashpot_commands::record::record(api, args),
    }
}

fn install(args: &InstallArgs) -> anyhow::Result<()> {
    let path = dashpot_commands::install(&args.dir)?;
    dashpot_output::print(&format!("installed: {}\n", path.display()))
}

/// The value of `DASHPOT_API`, for command lines without `--api`.
fn api_from_environment() -> Option<ApiAddress> {
    let address = std::env::var_os("DASHPOT_API")?;
    let parsed = parse_api(&address.to_string_lossy());
    let refuse = |error| dashpot_output::usage(&ParseError::new(format!("DASHPOT_API: {error}")));
    Some(parsed.unwrap_or_else(refuse))
}
