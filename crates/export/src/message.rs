//! The messages of other threads to a shard.

use dashpot_engine::{Answer, Command, CommandError, Duration, ZioId};

use crate::connection_limit::Permit;
use crate::events::Drops;
use crate::export::ExportId;
use crate::frontend::Session;
use crate::power::{Cut, CutError, Loss};
use crate::snapshot::DiskSnapshot;
use crate::store::Finished;

pub(crate) enum Message {
    /// A client has shaken hands.
    Connect(Handover),
    /// Rules or a disk's state are to change.
    Command(Command, CommandAnswer),
    /// A snapshot of the disk of an export is wanted, with so many of its oldest zios.
    Snapshot(ExportId, usize, Box<dyn FnOnce(DiskSnapshot) + Send>),
    /// The events of all finished zios are to be readable. The answer counts the dropped ones.
    Events(Box<dyn FnOnce(Drops) + Send>),
    /// A thread of the pool has done what the store could not do at once.
    Done(ZioId, Finished),
    /// The power of an export on a `lossy` disk is to be cut, or given back.
    Cut(ExportId, Cut, CutAnswer),
    /// The shard is to stop. Zios that are held have so long to end by themselves.
    Shutdown(Duration),
}

pub(crate) type CutAnswer = Box<dyn FnOnce(Result<Loss, CutError>) + Send>;
pub(crate) type CommandAnswer = Box<dyn FnOnce(Result<Answer, CommandError>) + Send>;

/// A connection on its way from the acceptor to its shard.
pub(crate) struct Handover {
    pub(crate) session: Session,
    pub(crate) export: ExportId,
    /// The client at the other end.
    pub(crate) peer: String,
    /// The bytes that it has sent already: the beginning of its first requests.
    pub(crate) left_over: Vec<u8>,
    /// Its place among all connections; the prober needs none.
    pub(crate) permit: Option<Permit>,
}
