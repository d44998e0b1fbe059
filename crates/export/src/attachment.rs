//! An attachment: an export that is a block device of this host, and not only of one client.

use std::os::fd::OwnedFd;

use dashpot_engine::Instant;

use crate::frontend::fuse::NotFuse;

/// How a node of the kernel's reaches its export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A loop device over a FUSE file.
    Loop,
}

impl Mechanism {
    /// The word of the command line for it.
    pub const fn name(self) -> &'static str {
        match self {
            Mechanism::Loop => "loop",
        }
    }
}

/// An attachment that is wanted.
#[derive(Debug)]
pub struct Attach {
    /// The descriptor of the kernel's side: for [`Mechanism::Loop`] a `/dev/fuse` with a mount.
    pub descriptor: OwnedFd,
    /// The node that it becomes, and the name of the client at the other end.
    pub node: String,
    /// How.
    pub mechanism: Mechanism,
    /// The process that asks, `uid=0 pid=7`.
    pub by: String,
}

/// An attachment at one moment.
#[derive(Clone, Debug)]
pub struct AttachmentView {
    /// The node, `/dev/loop0`.
    pub node: String,
    /// How.
    pub mechanism: Mechanism,
    /// The process that asked for it.
    pub by: String,
    /// Since when the shard serves it.
    pub since: Instant,
    /// How many of its zios have not been replied to.
    pub in_flight: u32,
}

/// Why an export is not attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// The descriptor is of another kind.
    #[error(transparent)]
    NotFuse(#[from] NotFuse),
    /// The power of the export is off, or its shard is about to end.
    #[error("the disk takes no clients now")]
    Closed,
    /// The system has no room for one more descriptor.
    #[error("the shard cannot wait for the descriptor: {0}")]
    Refused(rustix::io::Errno),
}

/// The facts about an attachment that its connection keeps.
#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) node: String,
    pub(crate) mechanism: Mechanism,
    pub(crate) by: String,
}

impl Attachment {
    pub(crate) fn view(&self, since: Instant, in_flight: u32) -> AttachmentView {
        AttachmentView {
            node: self.node.clone(),
            mechanism: self.mechanism,
            by: self.by.clone(),
            since,
            in_flight,
        }
    }
}
