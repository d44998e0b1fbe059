//! The commands. Most of them ask a running daemon; `serve` and `run` are daemons themselves.

pub(crate) mod attach;
mod attacher;
mod caller;
mod check;
mod child;
mod clear;
mod crash;
mod devices;
mod diff;
mod dmsetup;
mod doctor;
mod door;
mod draft;
mod failed;
mod generate;
mod inflight;
mod init;
mod inject;
mod install;
mod instance;
mod list;
mod load;
mod output;
mod page;
mod parent;
mod pipeline;
mod private;
mod program;
mod proof;
mod ready;
mod record;
mod reports;
mod reset;
mod resume;
mod run;
mod scraper;
mod screen;
mod serve;
mod signals;
mod sim;
mod stats;
mod status;
mod supervisor;
mod suspend;
mod token;
mod top;
mod tunables;
mod update;
mod variables;
mod view;
mod zinject;

use std::process::ExitCode;

use dashpot_api::Client;
use dashpot_rules::{ApiAddress, ParseError, parse_api};

use crate::cli::{Cli, Command, RecordCommand};

pub(crate) use attach::become_guard;
pub(crate) use attacher::become_attacher;
pub(crate) use child::{FAILED, become_command};
pub(crate) use init::become_init;
pub(crate) use output::is_broken_pipe;
pub(crate) use program::keeper::become_keeper;
pub(crate) use program::lookups::become_reader;

/// Runs the command, and returns the program's exit code.
pub(crate) fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    if let Command::Top(args) = &cli.command {
        top::check_api(cli.api.as_ref(), args);
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
        Command::Run(args) => return Ok(run::run(&args, api.as_ref())),
        Command::Serve(args) => return serve::serve(&args, api.as_ref()),
        Command::Inject(args) => return inject::inject(&client()?, &args),
        Command::Zinject(args) => return zinject::zinject(client, &args),
        Command::Sim(args) => return sim::sim(&args),
        Command::Status(args) => status::status(&client()?, &args)?,
        Command::Update(args) => update::update(&client()?, &args)?,
        Command::List(args) => list::list(&client()?, &args)?,
        Command::Check(args) => return check::check(&client()?, &args),
        Command::Proof(args) => return proof::proof(&client()?, &args),
        Command::Clear(args) => clear::clear(&client()?, &args)?,
        Command::Crash(args) => crash::crash(&client()?, &args)?,
        Command::Get(args) => tunables::get(&client()?, &args)?,
        Command::Set(args) => tunables::set(&client()?, &args)?,
        Command::Attach(args) => attach::attach(&client()?, &args)?,
        Command::Mount(args) => attach::mount::mount(&client()?, &args)?,
        Command::Detach(args) => return attach::detach(&client()?, &args),
        Command::Dmsetup(args) => dmsetup::dmsetup(&args)?,
        Command::Reset(args) => reset::reset(&client()?, &args)?,
        Command::Suspend(args) => suspend::suspend(&client()?, &args)?,
        Command::Resume(args) => resume::resume(&client()?, &args)?,
        Command::Report(kind) => reports::show(api.as_ref(), &kind)?,
        Command::Inflight(args) => inflight::inflight(api.as_ref(), &args)?,
        Command::Stats(args) => stats::stats(&args)?,
        Command::Record(args) => match &args.command {
            Some(RecordCommand::Cut(args)) => record::cut(args)?,
            Some(RecordCommand::Show(args)) => record::show(args)?,
            None => record::record(api.as_ref(), &args)?,
        },
        Command::Diff(args) => diff::diff(&args)?,
        Command::View(args) => view::view(&args)?,
        Command::Load(args) => load::load(&args)?,
        Command::Doctor(args) => doctor::doctor(client().ok().as_ref(), &args)?,
        Command::Top(args) => return top::top(api.as_ref(), &args),
        Command::Man(args) => generate::man(&args)?,
        Command::Install(args) => {
            let path = install::install(&args.dir)?;
            output::print(&format!("installed: {}\n", path.display()))?;
        }
        Command::Version => output::print(&install::version())?,
        Command::Completions(args) => {
            output::print(&generate::completions(args.shell))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The value of `DASHPOT_API`, for command lines without `--api`.
fn api_from_environment() -> Option<ApiAddress> {
    let address = std::env::var_os("DASHPOT_API")?;
    let parsed = parse_api(&address.to_string_lossy());
    let refuse = |error| output::usage(&ParseError::new(format!("DASHPOT_API: {error}")));
    Some(parsed.unwrap_or_else(refuse))
}
