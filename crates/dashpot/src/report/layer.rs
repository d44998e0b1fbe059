//! Where latencies are measured.

use clap::ValueEnum;
use serde::Serialize;

/// What a report is of: of disks, of the volumes above them, or of what is below the injection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Layer {
    Volume,
    #[default]
    Disk,
    Store,
}
