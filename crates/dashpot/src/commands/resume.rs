//! `resume`: lets a suspended disk go on.

use super::output::print;
use crate::api::types::Resumed;
use crate::client::{Client, segment};

pub(crate) fn resume(client: &Client, disk: &str) -> anyhow::Result<()> {
    let path = format!("/v1/disks/{}/resume", segment(disk));
    let Resumed { waiting } = client.post(&path, &())?;
    print(&format!("{disk} goes on; {waiting} zios had waited\n"))
}
