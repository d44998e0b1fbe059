//! Disks and volumes that appear as block devices on the daemon's host.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Error;

/// A block device of the host whose bytes are those of a disk or a volume.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Attachment {
    /// The path of the device, which is also the name of the client.
    #[schema(example = "/dev/loop0")]
    pub node: String,
    /// How the device reaches the daemon.
    pub mechanism: MechanismWord,
    /// The process that attached the device.
    #[schema(example = "uid=0 pid=4711")]
    pub by: String,
    /// Time since the device was attached.
    pub age_ns: u64,
    /// Number of the device's zios that have no reply yet.
    pub in_flight: u32,
}

/// How a block device reaches the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MechanismWord {
    /// A loop device over a FUSE file.
    Loop,
    /// The kernel's NBD client.
    Nbd,
    /// The kernel's ublk driver.
    Ublk,
}

impl MechanismWord {
    /// The API's word for the mechanism.
    pub fn name(self) -> &'static str {
        match self {
            MechanismWord::Loop => "loop",
            MechanismWord::Nbd => "nbd",
            MechanismWord::Ublk => "ublk",
        }
    }
}

/// Ends an attachment.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FailAttachment {
    /// The path of the device.
    #[schema(example = "/dev/loop0")]
    pub node: String,
}

/// The attachment has ended. The device fails every request from now on.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AttachmentFailed {
    /// Number of the device's zios that were in flight and failed.
    pub failed: u32,
}

/// Sends the daemon a descriptor that makes the kernel a client of a disk or a volume. The request travels
/// over a separate socket, as a line of JSON, because HTTP carries no descriptors.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandOver {
    /// The name of the disk or the volume.
    pub disk: String,
    /// The path of the host's block device for the disk or the volume.
    pub node: String,
    /// How the block device reaches the daemon.
    pub mechanism: MechanismWord,
}

/// Whether the daemon has accepted the descriptor.
#[derive(Debug, Serialize, Deserialize)]
pub struct HandedOver {
    /// The reason for a refusal; null if the daemon has accepted the descriptor.
    pub refused: Option<Error>,
}
