//! zinject: the flags, the refusals and the tables of OpenZFS's fault injector.
//!
//! What is known of it is in its manual and its output (OpenZFS 2.4; up to 2.3 for the tables of
//! D. Prakash Surya's article of 2015). It differs where a block device is no pool: the flags for
//! labels, objects, pools and the ARC are refused by name; the trailing pool may be any word,
//! because pools are not served yet, and is printed back; GUIDs are hashes of names; and text after
//! the lanes of `-D`, which zinject ignores, is refused.

mod getopt;
mod guid;
mod options;
mod request;
mod table;

use clap::{Command, CommandFactory, ValueEnum};

pub(crate) use guid::Guid;
pub(crate) use request::{Add, Cancel, Refusal, Request, parse};
pub(crate) use table::{Handler, added, list, removed};

/// The release of OpenZFS whose output is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// Up to 2.3: neither I/O types nor counters.
    #[value(name = "2.3")]
    V2_3,
    /// 2.4 and later.
    #[default]
    #[value(name = "2.4")]
    V2_4,
}

/// What `zinject -h` prints.
pub(crate) fn help() -> String {
    of_command(|zinject| zinject.render_help().to_string())
}

/// What follows an error in the words: the forms of the command, and where to read more.
pub(crate) fn short_usage() -> String {
    let usage = of_command(|zinject| zinject.render_usage().to_string());
    format!("{usage}\n\nFor more information, try 'dashpot zinject -h'.")
}

fn of_command(render: impl Fn(&mut Command) -> String) -> String {
    let mut root = crate::cli::Cli::command();
    root.build();
    root.find_subcommand_mut("zinject")
        .map(render)
        .unwrap_or_default()
}
