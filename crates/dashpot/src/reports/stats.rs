//! `stats`: lists the words from which a statistic is made.

use dashpot_cli::StatsArgs;
use dashpot_output::screen::room;
use dashpot_output::{print, print_json};
use dashpot_report::stats::Stats;

pub(crate) fn stats(args: &StatsArgs) -> anyhow::Result<()> {
    let stats = Stats::new(room(false));
    if args.json {
        print_json(&stats)
    } else {
        print(&stats.to_string())
    }
}
