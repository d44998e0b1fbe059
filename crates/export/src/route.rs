//! The way to each export: its shard, and its ids there.

use std::sync::Arc;

use dashpot_engine::DiskId;

use crate::export::ExportId;
use crate::mailbox::Mailbox;
use crate::message::Message;

/// The shard of an export, and the export's id there.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) mailbox: Arc<Mailbox<Message>>,
    pub(crate) export: ExportId,
    /// The disk behind it, for commands to the engine.
    pub(crate) disk: DiskId,
}
