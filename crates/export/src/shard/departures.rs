//! Connections that are gone and still have zios in flight.
//!
//! The place of such a connection stays empty until its last zio is aborted, so that no reply can reach a new
//! connection at the same place.

use std::collections::VecDeque;

use dashpot_engine::ClientId;

use super::slots::ZioList;
use crate::export::ExportId;

#[derive(Debug, Default)]
pub(super) struct Departures {
    queue: VecDeque<Departure>,
}

/// A connection that is gone, with those of its zios that the shard has not aborted yet.
#[derive(Debug)]
pub(super) struct Departure {
    /// The former place of the connection.
    pub(super) at: usize,
    pub(super) export: ExportId,
    pub(super) client: ClientId,
    pub(super) zios: ZioList,
}

impl Departures {
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&mut self, departure: Departure) {
        self.queue.push_back(departure);
    }

    pub(super) fn pop(&mut self) -> Option<Departure> {
        self.queue.pop_front()
    }

    /// Removes and returns the departed connections of one export.
    pub(super) fn take_of(&mut self, export: ExportId) -> Vec<Departure> {
        let queue = std::mem::take(&mut self.queue);
        let (of_export, others): (Vec<_>, Vec<_>) = queue
            .into_iter()
            .partition(|departure| departure.export == export);
        self.queue = others.into();
        of_export
    }
}
