//! The connections of a shard, each at a place in a list, and the epoll descriptor on which the shard waits
//! for them.

use std::collections::VecDeque;
use std::io;
use std::ops::{Index, IndexMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use dashpot_engine::ClientId;
use rustix::event::epoll::{self, EventFlags};

use super::connection::Connection;
use super::slots::ZioList;
use super::zios::Zios;
use crate::export::ExportId;
use crate::frontend::Session;
use crate::frontend::boundary::{Arrival, Frontend};

/// The connections, by place. The place of a connection that is gone stays reserved until the shard
/// [releases](Connections::release) the place.
pub(super) struct Connections {
    places: Vec<Option<Connection>>,
    free: Vec<usize>,
    /// Connections that have been hung up. They are in no place any more, so the shard reads nothing from
    /// them and sends nothing to them.
    ended: Vec<(usize, Connection)>,
    /// Connections that are gone and still have zios in flight. The place of such a connection stays empty
    /// until its last zio is aborted, so that no reply can reach a new connection at the same place.
    departures: VecDeque<Departure>,
    lingering: Lingering,
    poller: Poller,
}

impl Connections {
    pub(super) fn new(poller: Poller) -> Connections {
        Connections {
            places: Vec::new(),
            free: Vec::new(),
            ended: Vec::new(),
            departures: VecDeque::new(),
            lingering: Lingering::default(),
            poller,
        }
    }

    pub(super) fn poller(&self) -> &Poller {
        &self.poller
    }

    /// The connection at a place that may have become empty: one that was kept from an earlier pass, or
    /// before something that may have ended the connection.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<&Connection> {
        self.places.get(at)?.as_ref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Connection> {
        self.places.get_mut(at)?.as_mut()
    }

    /// Gives a connection a place.
    pub(super) fn insert(&mut self, connection: Connection) -> usize {
        let at = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.places[at] = Some(connection);
        at
    }

    /// Begins to watch a new connection. If that fails, ends the connection.
    pub(super) fn begin_watch(&mut self, at: usize) -> rustix::io::Result<()> {
        let begun = self.poller.add(at, &self[at]);
        begun.inspect_err(|_| self.hang_up(at))
    }

    /// Makes the poller watch for the events that let a connection continue. If that fails, ends the
    /// connection.
    pub(super) fn watch(&mut self, at: usize) {
        if let Some(connection) = self.get(at)
            && !connection.has_lost_peer()
            && self.poller.watch(at, connection).is_err()
        {
            self.hang_up(at);
        }
    }

    /// Ends a connection, if there is one at this place. A pass takes it apart later: see
    /// [`Connections::part_with_ended`].
    pub(super) fn hang_up(&mut self, at: usize) {
        let connection = self.places.get_mut(at).and_then(Option::take);
        self.ended
            .extend(connection.map(|connection| (at, connection)));
    }

    pub(super) fn close_if_finished(&mut self, at: usize) {
        if self.get(at).is_some_and(Connection::is_finished) {
            self.hang_up(at);
        }
    }

    /// Notes that a peer has gone. Returns whether the shard has to finish the peer's zios, because the peer
    /// has said good-bye. Otherwise, ends the connection.
    pub(super) fn lose_peer(&mut self, at: usize) -> bool {
        if let Some(connection) = self.places.get_mut(at).and_then(Option::as_mut)
            && connection.is_closing()
            && self.poller.remove(connection).is_ok()
        {
            connection.lose_peer();
            return true;
        }
        self.hang_up(at);
        false
    }

    /// Whether a pass has to take connections apart, or to abort zios of those that are gone.
    pub(super) fn has_gone(&self) -> bool {
        !self.ended.is_empty() || !self.departures.is_empty()
    }

    pub(super) fn next_departure(&mut self) -> Option<Departure> {
        self.departures.pop_front()
    }

    /// Puts back a departure that still has zios to abort.
    pub(super) fn put_back(&mut self, departure: Departure) {
        self.departures.push_back(departure);
    }

    /// Removes and returns the departed connections of one export.
    pub(super) fn departures_of(&mut self, export: ExportId) -> Vec<Departure> {
        let queue = std::mem::take(&mut self.departures);
        let (of_export, others): (Vec<_>, Vec<_>) = queue
            .into_iter()
            .partition(|departure| departure.export == export);
        self.departures = others.into();
        of_export
    }

    /// See [`Lingering::go_on`].
    pub(super) fn linger_on(&mut self, at: usize) {
        self.lingering.go_on(at);
    }

    /// Takes apart the connections that have been hung up. The next passes abort their zios in flight.
    pub(super) fn part_with_ended(&mut self, zios: &mut Zios) {
        for (at, mut connection) in std::mem::take(&mut self.ended) {
            zios.budget.forget(at, &connection);
            let export = connection.export();
            if let Some(incoming) = connection.inlet_mut().abandon() {
                zios.buffers.give(incoming.payload);
                let length = u64::from(incoming.request.length);
                zios.budget.give_back(export, 0, length);
            }
            self.departures.push_back(Departure {
                at,
                export,
                client: connection.client(),
                zios: connection.zios(),
            });
            self.lingering
                .let_go(connection.into_session(), &self.poller);
        }
    }

    /// Frees a place for another connection.
    pub(super) fn release(&mut self, at: usize) {
        self.free.push(at);
    }

    /// All places, including empty ones.
    pub(super) fn places(&self) -> std::ops::Range<usize> {
        0..self.places.len()
    }

    /// How many places are taken by connections or not yet released.
    pub(super) fn taken(&self) -> usize {
        self.places.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.has_gone() && self.places.iter().all(Option::is_none)
    }
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

/// Sessions that stay after the end of their connection, because the kernel still has their device. They fail
/// all of the kernel's requests.
#[derive(Debug, Default)]
pub(super) struct Lingering {
    places: Vec<Option<Session>>,
}

impl Lingering {
    /// Drops the session of a connection that has ended. If the kernel still has the session's device, keeps
    /// the session instead.
    pub(super) fn let_go(&mut self, mut session: Session, poller: &Poller) {
        if !session.fail_all() {
            return;
        }
        let free = self.places.iter().position(Option::is_none);
        let at = free.unwrap_or(self.places.len());
        if poller.linger(at, &session).is_ok() {
            self.places
                .resize_with(self.places.len().max(at + 1), || None);
            self.places[at] = Some(session);
        }
    }

    /// Lets a session fail the requests that have arrived. Ends the session if the kernel has given up the
    /// session's device.
    pub(super) fn go_on(&mut self, at: usize) {
        let place = &mut self.places[at];
        place.take_if(|session| session.receive(&mut Vec::new()) == Arrival::End);
    }
}

/// The connection at a place that the caller has just found taken.
impl Index<usize> for Connections {
    type Output = Connection;

    #[inline]
    fn index(&self, at: usize) -> &Connection {
        match self.get(at) {
            Some(connection) => connection,
            None => panic!("no connection is at {at}"),
        }
    }
}

impl IndexMut<usize> for Connections {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut Connection {
        match self.get_mut(at) {
            Some(connection) => connection,
            None => panic!("no connection is at {at}"),
        }
    }
}

/// The descriptor on which a shard waits for its connections, its mailbox and its ring.
pub(super) struct Poller(OwnedFd);

/// The source of an event.
pub(super) enum Source {
    Mailbox,
    /// The ring of block devices.
    Ring,
    /// The connection at this place.
    Connection(usize),
    /// The lingering session at this place.
    Lingering(usize),
}

impl Poller {
    pub(super) fn new(mailbox: impl AsFd, ring: Option<BorrowedFd<'_>>) -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(MAILBOX);
        epoll::add(&epoll, mailbox, data, EventFlags::IN)?;
        if let Some(ring) = ring {
            let data = epoll::EventData::new_u64(RING);
            epoll::add(&epoll, ring, data, EventFlags::IN)?;
        }
        Ok(Poller(epoll))
    }

    pub(super) fn source(event: &epoll::Event) -> Source {
        match event.data.u64() {
            MAILBOX => Source::Mailbox,
            RING => Source::Ring,
            at if at & LINGERING != 0 => Source::Lingering((at - LINGERING) as usize),
            at => Source::Connection(at as usize),
        }
    }

    /// Begins to watch the connection at this place.
    fn add(&self, at: usize, connection: &Connection) -> rustix::io::Result<()> {
        let data = epoll::EventData::new_u64(at as u64);
        let flags = EventFlags::IN | EventFlags::RDHUP;
        epoll::add(&self.0, connection.session(), data, flags)
    }

    /// Makes epoll watch for those events that let the connection continue.
    fn watch(&self, at: usize, connection: &Connection) -> rustix::io::Result<()> {
        let mut flags = EventFlags::RDHUP;
        flags.set(EventFlags::IN, connection.wants_input());
        flags.set(EventFlags::OUT, connection.outlet().is_blocked());
        let data = epoll::EventData::new_u64(at as u64);
        epoll::modify(&self.0, connection.session(), data, flags)
    }

    /// Watches the session of a former connection, which lingers at this place.
    pub(super) fn linger(&self, at: usize, session: &Session) -> rustix::io::Result<()> {
        let data = epoll::EventData::new_u64(LINGERING | at as u64);
        epoll::modify(&self.0, session, data, EventFlags::IN)
    }

    /// Stops watching a connection.
    fn remove(&self, connection: &Connection) -> rustix::io::Result<()> {
        epoll::delete(&self.0, connection.session())
    }
}

impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The tokens of the mailbox and the ring. The token of a connection is its place.
const MAILBOX: u64 = u64::MAX;
const RING: u64 = u64::MAX - 1;
/// The bit that marks the token of a lingering session.
const LINGERING: u64 = 1 << 62;
