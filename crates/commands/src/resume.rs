//! `resume`: ends the suspension of a disk.

use dashpot_api::Client;
use dashpot_cli::ResumeArgs;
use dashpot_output::{print, print_json};

/// Ends the suspension of a disk.
pub fn resume(client: &Client, args: &ResumeArgs) -> anyhow::Result<()> {
    let disk = &args.disk;
    let resumed = client.resume(disk)?;
    if args.json {
        return print_json(&resumed);
    }
    print(&format!(
        "{disk} goes on; {} zios had waited\n",
        resumed.waiting
    ))
}
