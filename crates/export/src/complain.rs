//! Writes messages to standard error, without `eprintln!`, which panics when the reader of standard error has
//! gone, as in `dashpot … 2>&1 | head -1`. A message that cannot be written must not end the program.

use std::fmt;
use std::io::{self, Write};

use dashpot_rules::lines;

/// Writes a line to standard error. Escapes characters that would move the cursor, because a name in the line
/// may contain them.
pub fn complain(line: fmt::Arguments<'_>) {
    // If this fails, dashpot has no other place to report the failure.
    let _ = writeln!(io::stderr().lock(), "{}", lines(&line.to_string()));
}
