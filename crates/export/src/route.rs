//! The routes to the devices, pools and exports of the shards.

use std::sync::Arc;

use dashpot_engine::{DiskId, PoolId, VolumeId};

use crate::export::ExportId;
use crate::mailbox::Mailbox;
use crate::message::Message;

/// A route: the mailbox of a shard, and an id in that shard.
#[derive(Clone)]
pub(crate) struct Route<Id> {
    pub(crate) mailbox: Arc<Mailbox<Message>>,
    pub(crate) id: Id,
}

/// The routes to all disks, pools, volumes and exports, in the order of the configuration. Clients connect to
/// exports; rules belong to disks.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) disks: Vec<Route<DiskId>>,
    pub(crate) pools: Vec<Route<PoolId>>,
    pub(crate) volumes: Vec<Route<VolumeId>>,
    pub(crate) exports: Vec<Route<ExportId>>,
    /// The path disks: the index of each, and the route to its export. Clients cannot ask for these disks by
    /// name.
    pub(crate) followed: Vec<(usize, Route<ExportId>)>,
}
