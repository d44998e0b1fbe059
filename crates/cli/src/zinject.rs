//! `zinject`: its options, and the help of zinject itself.

use clap::{Args, Command};
use dashpot_rules::zinject::Compat;

use crate::words::compat;

/// Speak zinject: its flags, its milliseconds, its tables
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
#[command(override_usage = "\
dashpot zinject [--compat 2.3|2.4] [--json]
       dashpot zinject -d DEVICE -D MS:LANES [-T TYPE] [-f PCT] [-qF] POOL
       dashpot zinject -d DEVICE -e ERROR [-T TYPE] [-f PCT] [-qF] POOL
       dashpot zinject -c ID|all")]
#[command(after_help = "\
zinject's own flags, after the long options:
  -d DEVICE    a disk, by name or GUID   -T TYPE   read, write, flush, trim, all
  -D MS:LANES  delay, whole milliseconds -f PCT    a share, 0.0001 to 100
  -e ERROR     io (the store works first), io-prefail, noop or corrupt
  -c ID|all    remove a handler, or all  -q        print only the new id
  -h           this help                 -F        accepted: nothing is retried
POOL may be any word: a rule is for a disk alone. Without flags: list handlers.

Example:
  dashpot zinject -d c1t1d0 -D 10:1 tank")]
pub struct ZinjectArgs {
    /// The release of OpenZFS whose tables are printed
    #[arg(
        long,
        default_value = "2.4",
        hide_default_value = true,
        hide_possible_values = true
    )]
    #[arg(value_name = "2.3|2.4", value_parser = compat())]
    pub compat: Compat,
    /// List handlers as JSON
    #[arg(long)]
    pub json: bool,
    /// zinject's own flags, which clap cannot parse as zinject does.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<String>,
}

/// The help of `zinject -h`. `program` is the definition of dashpot's whole command line.
pub fn zinject_help(program: Command) -> String {
    of_zinject(program, |zinject| zinject.render_help().to_string())
}

/// The text after an error in zinject's arguments: the forms of the command, and a pointer to the help.
pub fn zinject_usage(program: Command) -> String {
    let usage = of_zinject(program, |zinject| zinject.render_usage().to_string());
    format!("{usage}\n\nFor more information, try 'dashpot zinject -h'.")
}

fn of_zinject(mut program: Command, render: impl Fn(&mut Command) -> String) -> String {
    program.build();
    let zinject = program.find_subcommand_mut("zinject");
    zinject.map(render).unwrap_or_default()
}
