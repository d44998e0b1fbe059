//! The connection of one client: a session of a frontend, and what is on its way in and out.

use std::io::IoSlice;

use dashpot_engine::ClientId;

use super::chunk::{Chunk, SLICES_MAX};
use super::intake::Inlet;
use super::outbox::Outlet;
use super::slots::{Slots, ZioList};
use crate::connection_limit::Permit;
use crate::export::{ExportId, ExportInfo};
use crate::frontend::Session;
use crate::frontend::boundary::{Arrival, Decoded, ExtentQuestion, Frontend};
use crate::store::{Extent, Store};

#[derive(Debug)]
pub(super) struct Connection {
    session: Session,
    export: ExportId,
    client: ClientId,
    inlet: Inlet,
    outlet: Outlet,
    /// Its zios that have not been replied to.
    zios: ZioList,
    /// It has asked for the end: nothing more is read, and it closes after its last reply.
    closing: bool,
    /// After that, its peer has gone: what it asked for is finished, and no reply is sent.
    peer_gone: bool,
    /// The budget keeps the shard from reading it.
    stalled: bool,
    /// What it [keeps](Connection::keeps), as the shard has counted it last.
    counted: u64,
    /// Its place among all connections.
    _permit: Option<Permit>,
}

impl Connection {
    pub(super) fn new(
        session: Session,
        export: ExportId,
        client: ClientId,
        left_over: Vec<u8>,
        permit: Option<Permit>,
    ) -> Connection {
        Connection {
            session,
            export,
            client,
            inlet: Inlet::new(left_over),
            outlet: Outlet::default(),
            zios: ZioList::default(),
            closing: false,
            peer_gone: false,
            stalled: false,
            counted: 0,
            _permit: permit,
        }
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    #[inline]
    pub(super) fn export(&self) -> ExportId {
        self.export
    }

    #[inline]
    pub(super) fn client(&self) -> ClientId {
        self.client
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

    /// Whether the shard may read it: not while it does not take its replies.
    #[inline]
    pub(super) fn wants_input(&self) -> bool {
        !self.closing && !self.stalled && self.outlet.has_room()
    }

    /// The bytes that it makes its shard keep beside those of its zios: received ones that the shard
    /// has not looked at, and replies that the client has not taken.
    #[inline]
    fn keeps(&self) -> u64 {
        (self.inlet.keeps() + self.outlet.keeps()) as u64
    }

    /// Counts anew what it keeps. Says what it kept before, and what it keeps now.
    #[inline]
    pub(super) fn recount(&mut self) -> (u64, u64) {
        let keeps = self.keeps();
        (std::mem::replace(&mut self.counted, keeps), keeps)
    }

    /// What it keeps, as it was counted last.
    pub(super) fn counted(&self) -> u64 {
        self.counted
    }

    pub(super) fn stall(&mut self, stalled: bool) {
        self.stalled = stalled;
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Closes it after its last reply.
    pub(super) fn close(&mut self) {
        self.closing = true;
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing
    }

    /// From here on replies go nowhere.
    pub(super) fn lose_peer(&mut self) {
        self.peer_gone = true;
        self.outlet.unblock();
    }

    pub(super) fn has_lost_peer(&self) -> bool {
        self.peer_gone
    }

    /// Whether everything that it asked for has been replied to and sent.
    pub(super) fn is_finished(&self) -> bool {
        self.closing && self.zios.is_empty() && self.outlet.is_empty()
    }

    #[inline]
    pub(super) fn may_hold_request(&self, received: &[u8]) -> bool {
        self.session.may_hold_request(received)
    }

    /// Whether received bytes that the shard has kept may begin with a request.
    pub(super) fn may_go_on(&self) -> bool {
        self.wants_input() && self.session.may_hold_request(self.inlet.rest())
    }

    #[inline]
    pub(super) fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        self.session.receive(into)
    }

    /// Receives more of the payload that is being collected.
    pub(super) fn receive_payload(&mut self) -> Arrival {
        match self.inlet.payload_mut() {
            Some(payload) => self.session.receive(payload),
            None => Arrival::Nothing,
        }
    }

    #[inline]
    pub(super) fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded {
        self.session.decode(received, export)
    }

    pub(super) fn extents_reply(&self, question: &ExtentQuestion, extents: &[Extent]) -> Vec<u8> {
        self.session.extents_reply(question, extents)
    }

    /// Fills a chunk with as many of its replies as one may have.
    #[inline]
    pub(super) fn fill(&mut self, chunk: &mut Chunk, slots: &Slots) {
        self.outlet.fill(chunk, &self.session, slots);
    }

    /// Offers the transport what it has not accepted yet of a chunk. Says how many bytes it takes.
    pub(super) fn offer(
        &mut self,
        chunk: &Chunk,
        slots: &Slots,
        store: &Store,
    ) -> rustix::io::Result<usize> {
        if chunk.is_empty() || self.peer_gone {
            return Ok(chunk.left());
        }
        let mut room = [IoSlice::new(&[]); SLICES_MAX];
        self.session.send(chunk.slices(slots, store, &mut room))
    }
}
