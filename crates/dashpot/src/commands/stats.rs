//! `stats`: lists the words from which a statistic is made.

use dashpot_report::stats::Stats;

use super::output::{print, print_json};
use super::screen::room;
use crate::cli::StatsArgs;

pub(crate) fn stats(args: &StatsArgs) -> anyhow::Result<()> {
    let stats = Stats::new(room(false));
    match args.json {
        true => print_json(&stats),
        false => print(&stats.to_string()),
    }
}
