//! The connection of one client: a session of a frontend, with its unfinished bytes and zios.

use dashpot_engine::{ClientId, Instant};

use super::chunk::{Chunk, Slices, Sources};
use super::intake::Inlet;
use super::outbox::Outlet;
use super::slots::{Slots, ZioList};
use crate::connection_limit::Permit;
use crate::export::ExportId;
use crate::frontend::Session;
use crate::frontend::boundary::{Arrival, Frontend};
use crate::message::{Attachment, Handover};

#[derive(Debug)]
pub(super) struct Connection {
    session: Session,
    export: ExportId,
    client: ClientId,
    inlet: Inlet,
    outlet: Outlet,
    /// The connection's zios whose replies have not been sent.
    zios: ZioList,
    /// Whether the client has said good-bye. If so, the shard reads nothing more, and closes the connection
    /// after the last reply.
    closing: bool,
    /// Whether the peer has gone after its good-bye. If so, the shard finishes the peer's requests, but sends
    /// no replies.
    peer_gone: bool,
    /// Whether the budget keeps the shard from reading the connection.
    stalled: bool,
    /// The number of bytes that the connection [keeps](Connection::keeps), as last counted.
    counted: u64,
    /// The connection's permit. The number of permits is limited.
    _permit: Option<Permit>,
    /// The attachment that the connection serves, and when it began to do so. `None` unless the client is the
    /// kernel.
    attachment: Option<Box<(Attachment, Instant)>>,
}

impl Connection {
    pub(super) fn new(handover: Handover, client: ClientId, now: Instant) -> Connection {
        Connection {
            session: handover.session,
            export: handover.export,
            client,
            inlet: Inlet::new(handover.left_over),
            outlet: Outlet::default(),
            zios: ZioList::default(),
            closing: false,
            peer_gone: false,
            stalled: false,
            counted: 0,
            _permit: handover.permit,
            attachment: handover.attachment.map(|it| Box::new((it, now))),
        }
    }

    #[inline]
    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    #[inline]
    pub(super) fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    pub(super) fn into_session(self) -> Session {
        self.session
    }

    #[inline]
    pub(super) fn export(&self) -> ExportId {
        self.export
    }

    #[inline]
    pub(super) fn client(&self) -> ClientId {
        self.client
    }

    pub(super) fn attachment(&self) -> Option<(&Attachment, Instant)> {
        let (attachment, since) = self.attachment.as_deref()?;
        Some((attachment, *since))
    }

    #[inline]
    pub(super) fn inlet(&self) -> &Inlet {
        &self.inlet
    }

    #[inline]
    pub(super) fn inlet_mut(&mut self) -> &mut Inlet {
        &mut self.inlet
    }

    #[inline]
    pub(super) fn outlet(&self) -> &Outlet {
        &self.outlet
    }

    #[inline]
    pub(super) fn outlet_mut(&mut self) -> &mut Outlet {
        &mut self.outlet
    }

    #[inline]
    pub(super) fn zios(&self) -> ZioList {
        self.zios
    }

    #[inline]
    pub(super) fn zios_mut(&mut self) -> &mut ZioList {
        &mut self.zios
    }

    /// Whether the shard may read the connection. The shard may not read it while the client does not take
    /// its replies.
    #[inline]
    pub(super) fn wants_input(&self) -> bool {
        !self.closing && !self.stalled && self.outlet.has_room()
    }

    /// How many bytes the connection makes its shard keep in addition to those of its zios: received bytes
    /// that the shard has not decoded, and replies that the client has not taken.
    #[inline]
    fn keeps(&self) -> u64 {
        (self.inlet.keeps() + self.outlet.keeps()) as u64
    }

    /// Counts the kept bytes again. Returns the previous and the new count.
    #[inline]
    pub(super) fn recount(&mut self) -> (u64, u64) {
        let keeps = self.keeps();
        (std::mem::replace(&mut self.counted, keeps), keeps)
    }

    /// The last count of the kept bytes.
    pub(super) fn counted(&self) -> u64 {
        self.counted
    }

    pub(super) fn stall(&mut self, stalled: bool) {
        self.stalled = stalled;
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Closes the connection after its last reply.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Discards all replies from here on.
    pub(super) fn lose_peer(&mut self) {
        self.peer_gone = true;
        self.outlet.unblock();
    }

    pub(super) fn has_lost_peer(&self) -> bool {
        self.peer_gone
    }

    /// Whether the connection is closing, and the shard has sent the replies to all its requests.
    pub(super) fn is_finished(&self) -> bool {
        self.closing && self.zios.is_empty() && self.outlet.is_empty()
    }

    /// Whether the shard may read the connection, and the kept bytes suffice to try to decode a request.
    pub(super) fn may_go_on(&self) -> bool {
        self.wants_input() && self.session.may_hold_request(self.inlet.rest())
    }

    /// Receives more of the current payload.
    pub(super) fn receive_payload(&mut self) -> Arrival {
        match self.inlet.payload_mut() {
            Some(payload) => self.session.receive(payload),
            None => Arrival::Nothing,
        }
    }

    /// Fills a chunk with as many of the connection's replies as fit.
    #[inline]
    pub(super) fn fill(&mut self, chunk: &mut Chunk, slots: &Slots) {
        self.outlet.fill(chunk, &self.session, slots);
    }

    /// Offers the unaccepted part of a chunk to the transport. Returns how many bytes the transport has
    /// accepted.
    pub(super) fn offer(
        &mut self,
        chunk: &Chunk,
        sources: Sources<'_>,
    ) -> rustix::io::Result<usize> {
        if chunk.is_empty() || self.peer_gone {
            return Ok(chunk.left());
        }
        let mut room = Slices::new();
        self.session.send(chunk.slices(sources, &mut room))
    }
}
