//! The acceptor: one thread that accepts connections and shakes hands with all clients at once. It never
//! blocks on any one client. After a handshake, the acceptor hands the connection to the shard of the export
//! that the client chose.

mod handshaking;
mod pending;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dashpot_engine::{Duration, Instant};
use dashpot_sys::wait_for_events;
use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{self, SocketFlags, sockopt};

use self::handshaking::Handshaking;
use self::pending::{Pending, Waiting};
use crate::clock;
use crate::connection_limit::ConnectionLimit;
use crate::export::{ExportId, ExportInfo};
use crate::frontend::Progress;
use crate::listen::Listener;
use crate::mailbox::Mailbox;
use crate::message::{Handover, Message};
use crate::route::Route;

/// A message from another thread to the acceptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptorMessage {
    /// Let clients in. Until this message arrives, clients wait in the listeners' backlog.
    Open,
    /// Let no more clients in.
    Close,
}

pub(crate) struct Acceptor {
    epoll: OwnedFd,
    listeners: Vec<Listener>,
    mailbox: Arc<Mailbox<AcceptorMessage>>,
    exports: Arc<[ExportInfo]>,
    /// For each export, the route to its shard.
    routes: Vec<Route<ExportId>>,
    pending: Pending<Handshaking>,
    limit: ConnectionLimit,
    /// Whether clients are let in. True from the message `Open` until the message `Close`.
    opened: bool,
    /// The acceptor accepts no connection before this moment, because the system had no room for another.
    pauses_until: Option<Instant>,
    /// Whether epoll watches the listeners. It does not watch them while no client can be let in.
    watching: bool,
}

impl Acceptor {
    pub(crate) fn new(
        listeners: Vec<Listener>,
        exports: Arc<[ExportInfo]>,
        routes: Vec<Route<ExportId>>,
        mailbox: Arc<Mailbox<AcceptorMessage>>,
    ) -> io::Result<Acceptor> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(MAILBOX);
        epoll::add(&epoll, &*mailbox, data, epoll::EventFlags::IN)?;
        for (at, listener) in listeners.iter().enumerate() {
            let data = epoll::EventData::new_u64(FIRST_LISTENER + at as u64);
            epoll::add(&epoll, listener, data, epoll::EventFlags::empty())?;
        }
        Ok(Acceptor {
            epoll,
            listeners,
            mailbox,
            exports,
            routes,
            pending: Pending::default(),
            limit: ConnectionLimit::default(),
            opened: false,
            pauses_until: None,
            watching: false,
        })
    }

    /// Lets clients in until a message makes the acceptor close.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        loop {
            self.wait(&mut events)?;
            for event in events.drain(..) {
                match event.data.u64() {
                    MAILBOX => {
                        let messages = self.mailbox.take();
                        if messages.contains(&AcceptorMessage::Close) {
                            return Ok(());
                        }
                        self.opened |= !messages.is_empty();
                    }
                    listener if listener >= FIRST_LISTENER => {
                        self.accept((listener - FIRST_LISTENER) as usize);
                    }
                    client => self.advance(client),
                }
            }
            self.pending.end_late(clock::now());
            self.watch_listeners()?;
        }
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let now = clock::now();
        // While the listeners are not watched, the acceptor wakes up when a handshake becomes displaceable,
        // because it can then let another client in.
        let room = self.pending.displaceable_at().filter(|_| !self.watching);
        let moments = [self.pending.late_at(), room, self.pauses_until];
        let soonest = moments.into_iter().flatten().min();
        let timeout = soonest.map(|at| clock::timespec(at.since(now)));
        Ok(wait_for_events(
            self.epoll.as_fd(),
            events,
            timeout.as_ref(),
        )?)
    }

    fn accept(&mut self, listener: usize) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        for _ in 0..ACCEPTS_PER_TURN {
            let now = clock::now();
            if !self.pending.has_room(now) {
                return;
            }
            match net::accept_with(&self.listeners[listener], flags) {
                Ok(fd) => {
                    if let Some(displaced) = self.pending.displaceable(now) {
                        self.pending.take(displaced);
                    }
                    self.begin(now, fd);
                }
                // No client is waiting, or the waiting client has already gone.
                Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => return,
                // The process has too many descriptors, or the system has no memory left. The listener stays
                // readable, so without a pause the acceptor would try again at once, over and over.
                Err(_) => {
                    self.pauses_until = Some(now + PAUSE);
                    return;
                }
            }
        }
    }

    /// Begins the handshake with a client that has just connected.
    fn begin(&mut self, now: Instant, fd: OwnedFd) {
        let peer = peer_name(fd.as_fd());
        let Some(permit) = self.limit.admit(&peer) else {
            return;
        };
        let id = self.pending.next();
        let flags = epoll::EventFlags::IN;
        if epoll::add(&self.epoll, &fd, epoll::EventData::new_u64(id), flags).is_err() {
            return;
        }
        // Unix sockets refuse this option, but they never delay small packets anyway.
        let _ = sockopt::set_tcp_nodelay(&fd, true);
        let client = Handshaking::new(fd, permit, Arc::clone(&self.exports));
        self.pending.enter(now, peer, client);
        self.advance(id);
    }

    /// Continues a handshake with the bytes that the client has sent so far.
    fn advance(&mut self, id: u64) {
        let Some(mut place) = self.pending.take(id) else {
            return;
        };
        let client = &mut place.client;
        if client.advance().is_err() {
            return;
        }
        if client.is_going_on() {
            self.watch(id, client);
            self.pending.put_back(id, place);
        } else {
            self.hand_over(place);
        }
    }

    fn watch(&self, id: u64, client: &Handshaking) {
        let flags = if client.has_output() {
            epoll::EventFlags::OUT
        } else {
            epoll::EventFlags::IN
        };
        // If epoll refuses the descriptor, the connection is closed when its handshake times out.
        let data = epoll::EventData::new_u64(id);
        let _ = epoll::modify(&self.epoll, &client.fd, data, flags);
    }

    /// Hands a client to its shard after the handshake. Drops a client that has not chosen an
    /// export.
    fn hand_over(&self, place: Waiting<Handshaking>) {
        let Handshaking {
            fd,
            permit,
            progress: Progress::Ready(agreed),
            ..
        } = place.client
        else {
            return;
        };
        // From here on, the shard's epoll watches the descriptor. If the shard is gone, the descriptor is
        // closed.
        let _ = epoll::delete(&self.epoll, &fd);
        if let Some(route) = self.routes.get(agreed.export) {
            let (session, left_over) = agreed.session(fd);
            let handover = Handover {
                session,
                export: route.id,
                peer: place.peer,
                left_over,
                permit: Some(permit),
                attachment: None,
            };
            let _ = route.mailbox.send(Message::Connect(handover));
        }
    }

    /// Makes epoll watch the listeners only while a client can be let in. At other times, clients wait in the
    /// backlog.
    fn watch_listeners(&mut self) -> io::Result<()> {
        let now = clock::now();
        self.pauses_until = self.pauses_until.filter(|until| *until > now);
        let pauses = self.pauses_until.is_some();
        let watch = self.opened && !pauses && self.pending.has_room(now);
        if watch == self.watching {
            return Ok(());
        }
        self.watching = watch;
        let mut flags = epoll::EventFlags::empty();
        flags.set(epoll::EventFlags::IN, watch);
        for (at, listener) in self.listeners.iter().enumerate() {
            let data = epoll::EventData::new_u64(FIRST_LISTENER + at as u64);
            epoll::modify(&self.epoll, listener, data, flags)?;
        }
        Ok(())
    }
}

/// A peer's identity: its user and process on a unix socket, its address on TCP.
fn peer_name(fd: BorrowedFd<'_>) -> String {
    if let Ok(Some(address)) = net::getpeername(fd)
        && let Ok(address) = std::net::SocketAddr::try_from(address)
    {
        return address.ip().to_string();
    }
    match sockopt::socket_peercred(fd) {
        Ok(peer) => format!(
            "uid={} pid={}",
            peer.uid.as_raw(),
            peer.pid.as_raw_nonzero()
        ),
        Err(_) => "unknown".to_owned(),
    }
}

const MAILBOX: u64 = u64::MAX;
/// The epoll token of the first listener. Smaller tokens are the numbers of pending handshakes. The mailbox
/// has a token of its own.
const FIRST_LISTENER: u64 = 1 << 63;
/// The largest number of events that one wait returns.
const EVENTS: usize = 64;
/// How many connections the acceptor accepts in a row before it advances the pending handshakes.
const ACCEPTS_PER_TURN: usize = 64;
/// How long the acceptor pauses when the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);
