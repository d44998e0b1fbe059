//! zinject: the flags, the refusals and the tables of OpenZFS's fault injector.

use clap::{CommandFactory, ValueEnum};

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
    let mut root = crate::cli::Cli::command();
    root.build();
    let zinject = root.find_subcommand_mut("zinject");
    zinject
        .map(|command| command.render_help().to_string())
        .unwrap_or_default()
}
