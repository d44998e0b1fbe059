//! The output of commands: on standard output, on the terminal if it goes to one, and in files that options name.
//!
//! This crate writes what its caller gives it, and adds the host and the command line to HTML files. It asks no
//! daemon.

mod draft;
mod html_file;
mod print;
pub mod screen;

pub use draft::Draft;
pub use html_file::{HtmlFile, save};
pub use print::{is_broken_pipe, print, print_drawn, print_json, progress_bar, usage};
