//! The commands that show and change the tunables of a pool.

use clap::Args;
use dashpot_engine::pool::Tunable;
use dashpot_rules::{ParseError, parse_tunable_name, parse_tunable_setting};

/// Show the tunables of a pool
#[derive(Args, Debug)]
#[command(after_help = "\
Names, units and defaults are those of ZFS.

Examples: all tunables, with what each does; one tunable
  dashpot get tank --wide
  dashpot get tank zfs_delay_scale")]
pub struct GetArgs {
    /// The pool
    pub pool: String,
    /// Only these tunables
    #[arg(value_name = "TUNABLE", value_parser = parse_tunable_name)]
    pub tunables: Vec<Tunable>,
    /// Show what each tunable does, too
    #[arg(long)]
    pub wide: bool,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Change tunables of a pool while clients use it
#[derive(Args, Debug)]
#[command(after_help = "\
All named tunables change at once, or none. A number without a unit is in the
unit of the tunable, as in ZFS. A restart brings the values of the lab back.

Examples:
  dashpot set tank zfs_delay_scale=1ms
  dashpot set tank zfs_dirty_data_max=64M zfs_txg_timeout=1s")]
pub struct SetArgs {
    /// The pool
    pub pool: String,
    /// The tunables and their new values
    #[arg(required = true, value_name = "TUNABLE=VALUE", value_parser = parse_setting)]
    pub settings: Vec<Setting>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A tunable and its new value, as the user wrote it.
#[derive(Clone, Debug)]
pub struct Setting {
    pub name: &'static str,
    pub words: String,
}

fn parse_setting(text: &str) -> Result<Setting, ParseError> {
    let (tunable, _) = parse_tunable_setting(text)?;
    let words = text.split_once('=').map_or("", |(_, words)| words);
    Ok(Setting {
        name: tunable.info().name,
        words: words.to_owned(),
    })
}
