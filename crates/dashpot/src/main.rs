//! dashpot: a slow disk you control, and a microscope for storage latency.

// `println!` and the other standard macros panic when the reader of a pipe is gone. `complain` does not
// panic, and `output::print` returns an error.
#![deny(clippy::print_stderr, clippy::print_stdout)]

mod checks;
mod cli;
mod commands;
mod doctor;
mod lab;
mod sources;

use std::process::ExitCode;

use dashpot_export::complain;

fn main() -> ExitCode {
    let becomes = commands::become_command().or_else(commands::become_attacher);
    let becomes = becomes.or_else(commands::become_keeper);
    let becomes = becomes.or_else(commands::become_guard);
    let becomes = becomes.or_else(commands::become_init);
    if let Some(code) = becomes.or_else(commands::become_reader) {
        return code;
    }
    match commands::run(cli::Cli::parse_or_exit(commands::FAILED)) {
        Ok(code) => code,
        Err(error) if commands::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain(format_args!("dashpot: {error:#}"));
            ExitCode::FAILURE
        }
    }
}
