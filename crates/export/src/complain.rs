//! What is said on standard error. `eprintln!` panics where nobody reads that any more, as in
//! `dashpot … 2>&1 | head -1`: what cannot be said must not become a failure of its own.

use std::fmt;
use std::io::{self, Write};

use dashpot_rules::lines;

/// Says a line on standard error, if anybody reads it. Names and errors in it move no cursor.
pub fn complain(line: fmt::Arguments<'_>) {
    // There is nobody left to tell that nobody reads it.
    let _ = writeln!(io::stderr().lock(), "{}", lines(&line.to_string()));
}
