//! The source that the API answers about: a daemon, the kernel's disks, a simulation, or a recording.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The source of the statistics.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Source {
    /// The kind of the source.
    pub kind: SourceKind,
    /// The lab or the recording, as the command line names it; empty for a daemon and for the kernel's disks.
    pub name: String,
    /// The options with which a command-line report reads the same source, such as `--in REC`; empty for a
    /// daemon.
    pub words: String,
    /// The devices of the source.
    pub devices: Vec<SourceDevice>,
    /// The periods in which nothing was recorded.
    pub gaps: Vec<SourceGap>,
    /// The end of the source's last I/O; null while more I/Os may come.
    pub ended_ns: Option<u64>,
    /// The reason that the source can no longer answer; null if it can.
    pub trouble: Option<String>,
}

/// The kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A daemon, whose disks have rules.
    Daemon,
    /// The kernel's disks.
    Kernel,
    /// A lab under the virtual clock, whose times begin at 0.
    Simulation,
    /// A recording, whose times are those of the wall clock.
    Recording,
}

/// A device of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceDevice {
    /// The device's layer.
    pub layer: SourceLayer,
    /// The device's name.
    pub name: String,
    /// The devices directly beneath, whose I/Os are also this device's: sums of all devices leave this device out.
    /// Empty if it is not over others.
    pub over: Vec<String>,
}

/// The layer of a device of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceLayer {
    /// A disk, of dashpot or of the kernel.
    Disk,
    /// A volume of a pool.
    Volume,
    /// A disk of the kernel in a recording that has a daemon's disks, too.
    Kernel,
}

/// A period about which the source knows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SourceGap {
    /// The beginning of the gap.
    pub from_ns: u64,
    /// The end of the gap, which is excluded.
    pub to_ns: u64,
    /// The layer that was not recorded; null for all layers.
    pub layer: Option<SourceLayer>,
}
