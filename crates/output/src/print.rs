//! Prints answers: text, JSON, and progress.

use std::io::{self, IsTerminal, Write};

use clap::error::ErrorKind;
use dashpot_rules::{ParseError, lines, spelled};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

/// A line of progress on a terminal; nothing in a pipe.
pub fn progress_bar() -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{elapsed} {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Prints a value as indented JSON.
pub fn print_json(value: &impl Serialize) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// Prints lines of text. Escapes all characters that move the cursor, except line ends.
pub fn print(text: &str) -> anyhow::Result<()> {
    print_drawn(&lines(text))
}

/// Prints a picture unescaped, because a picture moves the cursor and changes colours. The picture must
/// contain no text from outside dashpot.
pub fn print_drawn(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(spelled(text).as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Ends the program with this error and exit code 2.
pub fn usage(error: &ParseError) -> ! {
    let said = lines(&error.to_string()).into_owned();
    clap::Error::raw(
        ErrorKind::ValueValidation,
        spelled(&said).into_owned() + "\n",
    )
    .exit()
}

/// Whether a reader such as `head` has closed the pipe, which is not a failure.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let pipe = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
    error
        .chain()
        .any(|cause| cause.downcast_ref::<io::Error>().is_some_and(pipe))
}

#[cfg(test)]
mod tests {
    use super::is_broken_pipe;

    #[test]
    fn a_broken_pipe_is_found_under_its_context() {
        let error = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(
            &anyhow::Error::from(error).context("printing")
        ));
        assert!(!is_broken_pipe(&anyhow::anyhow!("else")));
    }
}
