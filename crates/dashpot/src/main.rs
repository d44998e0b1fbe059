//! dashpot: a slow disk you control, and a microscope for storage latency.

mod api;
mod cli;
mod client;
mod commands;
mod daemon;
mod doctor;
mod lab;
mod report;
mod spec;
mod zinject;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Man(man) => cli::write_man_pages(&man.dir)?,
        Command::Completions(script) => {
            cli::write_completions(script.shell, &mut std::io::stdout());
        }
        other => anyhow::bail!("not wired yet: {other:?}"),
    }
    Ok(())
}
