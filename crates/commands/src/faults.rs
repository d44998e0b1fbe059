//! `faults`: what rules have done to the data of a disk.

use dashpot_api::Client;
use dashpot_cli::FaultsArgs;
use dashpot_output::screen::room;
use dashpot_output::{print, print_json};
use dashpot_text::faults::text;

/// More places than a disk has with wrong bytes.
const ALL: usize = 1 << 20;

/// Prints the wrong bytes of a disk, and the I/Os that rules have damaged.
pub fn faults(client: &Client, args: &FaultsArgs) -> anyhow::Result<()> {
    let top = args.top.unwrap_or(if args.json { ALL } else { 20 });
    let faults = client.faults(&args.disk, top)?;
    if args.json {
        return print_json(&faults);
    }
    print(&text(room(false), &faults))
}
