//! The messages from other threads to a shard.

use dashpot_engine::{Answer, Command, CommandError, Duration, ZioId};

use crate::attachment::{AttachError, Attachment};
use crate::connection_limit::Permit;
use crate::events::Drops;
use crate::export::ExportId;
use crate::frontend::Session;
use crate::power::{Cut, CutError, Loss};
use crate::snapshot::DiskSnapshot;
use crate::store::Finished;

pub(crate) enum Message {
    /// Serve a client that has shaken hands.
    Connect(Handover),
    /// The kernel is to be a client, by a descriptor of its own.
    Attach(Handover, AttachAnswer),
    /// The attachment of an export that has this node is to end. The answer counts the zios that fail.
    FailAttachment(ExportId, String, Box<dyn FnOnce(Option<u32>) + Send>),
    /// Change rules or the state of a disk.
    Command(Command, CommandAnswer),
    /// Take a snapshot of the disk of an export, with this many of its oldest zios in flight.
    Snapshot(ExportId, usize, Box<dyn FnOnce(DiskSnapshot) + Send>),
    /// Publish the events of all finished zios, and answer with the count of dropped events.
    Events(Box<dyn FnOnce(Drops) + Send>),
    /// A thread of the pool has finished work that the store could not do at once.
    Done(ZioId, Finished),
    /// Cut the power of an export on a `lossy` disk, or restore it.
    Cut(ExportId, Cut, CutAnswer),
    /// Stop. Zios that are held may end by themselves within this time.
    Shutdown(Duration),
}

pub(crate) type AttachAnswer = Box<dyn FnOnce(Result<(), AttachError>) + Send>;
pub(crate) type CutAnswer = Box<dyn FnOnce(Result<Loss, CutError>) + Send>;
pub(crate) type CommandAnswer = Box<dyn FnOnce(Result<Answer, CommandError>) + Send>;

/// A connection on its way to its shard.
pub(crate) struct Handover {
    pub(crate) session: Session,
    pub(crate) export: ExportId,
    /// The client at the other end.
    pub(crate) peer: String,
    /// The bytes that the client has sent after the handshake: the beginning of its first requests.
    pub(crate) left_over: Vec<u8>,
    /// Its permit among all connections. The prober needs none.
    pub(crate) permit: Option<Permit>,
    /// The node, if the client is the kernel.
    pub(crate) attachment: Option<Attachment>,
}
