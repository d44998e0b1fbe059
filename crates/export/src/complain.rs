//! Writes messages to standard error, without `eprintln!`, which panics when the reader of standard error has
//! gone, as in `dashpot … 2>&1 | head -1`. A message that cannot be written must not end the program.

use std::fmt;
use std::io::{self, Write};

use dashpot_rules::{lines, spelled, visible};

/// Writes one line to standard error. Escapes characters that would move the cursor or begin another line,
/// because a name in the line may contain them. A line of its own could be a command to a pipeline's runner.
pub fn complain(line: fmt::Arguments<'_>) {
    write(&visible(&line.to_string()));
}

/// Writes lines to standard error. A name in them that comes from outside must be visible already.
pub fn complain_lines(text: &str) {
    write(&lines(text));
}

fn write(text: &str) {
    // If this fails, dashpot has no other place to report the failure.
    let _ = writeln!(io::stderr().lock(), "{}", spelled(text));
}
