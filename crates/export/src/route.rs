//! Where the connections and the commands of each disk go.

use std::sync::Arc;

use dashpot_engine::DiskId;

use crate::mailbox::Mailbox;
use crate::message::Message;

/// The shard of a disk, and the disk's id there.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) mailbox: Arc<Mailbox<Message>>,
    pub(crate) disk: DiskId,
}
