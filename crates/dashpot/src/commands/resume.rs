//! `resume`: lets a suspended disk go on.

use super::output::{print, print_json};
use crate::api::types::Resumed;
use crate::cli::ResumeArgs;
use crate::client::{Client, segment};

pub(crate) fn resume(client: &Client, args: &ResumeArgs) -> anyhow::Result<()> {
    let disk = &args.disk;
    let path = format!("/v1/disks/{}/resume", segment(disk));
    let resumed: Resumed = client.post(&path, &())?;
    if args.json {
        return print_json(&resumed);
    }
    print(&format!(
        "{disk} goes on; {} zios had waited\n",
        resumed.waiting
    ))
}
