//! What this host can do.

use crate::cli::DoctorArgs;

pub(crate) fn doctor(_args: &DoctorArgs) -> anyhow::Result<()> {
    Ok(())
}
