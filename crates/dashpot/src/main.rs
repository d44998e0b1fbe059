//! dashpot: a slow disk you control, and a microscope for storage latency.

mod api;
mod checks;
mod cli;
mod client;
mod commands;
mod daemon;
mod doctor;
mod host;
mod lab;
mod metrics;
mod observe;
mod promises;
mod report;
mod spec;
mod zinject;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) if commands::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dashpot: {error:#}");
            ExitCode::FAILURE
        }
    }
}
