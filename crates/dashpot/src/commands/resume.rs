//! `resume`: ends the suspension of a disk.

use dashpot_api::Client;

use super::output::{print, print_json};
use crate::cli::ResumeArgs;

pub(crate) fn resume(client: &Client, args: &ResumeArgs) -> anyhow::Result<()> {
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
