//! The messages from other threads to a shard.

use std::io;
use std::os::fd::OwnedFd;

use dashpot_engine::{
    Answer, Command, CommandError, Device, DiskId, Duration, Outcome, PoolId, ZioId,
};
use dashpot_sys::seccomp::Listener;

use crate::clock;
use crate::connection_limit::Permit;
use crate::damage::DamageReport;
use crate::events::Drops;
use crate::export::{ExportId, Followed, Follower, Mechanism, Uring};
use crate::frontend::{self, Connect, Followable, NotServed, Session};
use crate::power::{Cut, CutError, Loss, PoolLoss};
use crate::snapshot::{DiskSnapshot, PoolSnapshot};
use crate::store::Finished;

pub(crate) enum Message {
    /// Serve a client that has completed its handshake.
    Connect(Handover),
    /// Serve the kernel as a client, through the descriptor of an attachment.
    Attach(ExportId, Attach, AttachAnswer),
    /// End the attachment of an export to the block device at this path. The answer is the number of zios
    /// that fail, or `None` if there is no such attachment.
    FailAttachment(ExportId, String, Box<dyn FnOnce(Option<u32>) + Send>),
    /// Change rules, or the state of a disk or a pool.
    Command(Command, CommandAnswer),
    /// Take a snapshot of a disk or a volume, with at most this many of its zios in flight, the oldest ones.
    Snapshot(Device, usize, Box<dyn FnOnce(DiskSnapshot) + Send>),
    /// Take a snapshot of a pool.
    SnapshotPool(PoolId, Box<dyn FnOnce(PoolSnapshot) + Send>),
    /// Report the damage of a disk.
    Damage(DiskId, Box<dyn FnOnce(DamageReport) + Send>),
    /// Publish the events of all finished zios. The answer has the counts of dropped events.
    Events(Box<dyn FnOnce(Drops) + Send>),
    /// A zio that a rule was to damage had nothing to damage, or could not be damaged. `Done` follows.
    Spared(ZioId),
    /// A worker thread has finished work that the store could not do at once.
    Done(ZioId, Finished),
    /// A worker thread has finished a batch of a lossy store's work.
    Settled(DiskId, Finished),
    /// Cut the power of an export on a `lossy` disk, or restore the power.
    Cut(ExportId, Cut, CutAnswer),
    /// Cut the power of a pool whose disks are all `lossy`, or restore the power.
    CutPool(PoolId, Cut, PoolCutAnswer),
    /// A keeper has written the record of a pool's mirrors durably, or has failed to.
    Recorded(PoolId, Outcome),
    /// End the shard. Zios that are held have this much time to end by themselves.
    Shutdown(Duration),
}

pub(crate) type AttachAnswer = Box<dyn FnOnce(Result<(), AttachError>) + Send>;
pub(crate) type CutAnswer = Box<dyn FnOnce(Result<Loss, CutError>) + Send>;
pub(crate) type PoolCutAnswer = Box<dyn FnOnce(Result<PoolLoss, CutError>) + Send>;
pub(crate) type CommandAnswer = Box<dyn FnOnce(Result<Answer, CommandError>) + Send>;

/// A connection that another thread hands to its shard.
pub(crate) struct Handover {
    pub(crate) session: Session,
    pub(crate) export: ExportId,
    /// The name of the connection's client.
    pub(crate) peer: String,
    /// The bytes that the client has sent after the handshake. They are the beginning of its first requests.
    pub(crate) left_over: Vec<u8>,
    /// The connection's permit, which the prober and the kernel do not need.
    pub(crate) permit: Option<Permit>,
    /// The attachment that the connection serves, if the client is the kernel.
    pub(crate) attachment: Option<Attachment>,
}

/// Sends messages to a shard.
pub(crate) type Outlet = Box<dyn Fn(Message) + Send + Sync>;

/// Connects a program and its descendants to exports as their clients. Each item of `files` has the files of one export: the
/// export gets the program's calls on these files.
pub(crate) fn follow(
    listener: Listener,
    files: impl Iterator<Item = (Followable, ExportId, Outlet)>,
    uring: Uring,
    follower: Box<dyn Follower>,
) -> io::Result<Followed> {
    let connect = |(files, export, send): (Followable, ExportId, Outlet)| {
        let connect = move |peer, session| {
            send(Message::Connect(Handover {
                session,
                export,
                peer,
                left_over: Vec::new(),
                permit: None,
                attachment: None,
            }));
        };
        (files, Box::new(connect) as Connect)
    };
    frontend::follow(listener, files.map(connect), uring, follower, clock::now)
}

/// An attachment to make.
#[derive(Debug)]
pub struct Attach {
    /// The daemon's end of the connection to the kernel. Each mechanism needs its own kind of
    /// descriptor.
    pub descriptor: OwnedFd,
    /// The path of the block device that the export becomes. It is also the client's name.
    pub node: String,
    /// How the device reaches the export.
    pub mechanism: Mechanism,
    /// The process that asks for the attachment, for example `uid=0 pid=7`.
    pub by: String,
}

/// The reason that an export is not attached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// The descriptor is of the wrong kind.
    #[error(transparent)]
    Descriptor(#[from] NotServed),
    /// The power of the export is off, or its shard is about to end.
    #[error("the disk takes no clients now")]
    Closed,
    /// The export is a block device already. Two block devices would not see each other's caches.
    #[error("it is {0} already")]
    Attached(String),
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
