//! The door: one thread that accepts connections and shakes hands, all at once and without
//! waiting for any of them, and then hands each to the shard of its export.

mod connection_limit;
mod handshaking;
mod pending;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dashpot_engine::{Duration, Instant};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, SocketFlags, sockopt};

use self::connection_limit::ConnectionLimit;
use self::handshaking::{After, Handshaking};
use self::pending::{Pending, Place};
use crate::clock;
use crate::export::ExportInfo;
use crate::listen::Listener;
use crate::mailbox::Mailbox;
use crate::route::Route;
use crate::shard::{Handover, Message};

pub(crate) use self::connection_limit::Permit;

/// What the door is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AcceptorMessage {
    /// Let clients in. Until then they wait in the backlog.
    Open,
    /// Let nobody in any more.
    Close,
}

pub(crate) struct Acceptor {
    epoll: OwnedFd,
    listeners: Vec<Listener>,
    mailbox: Arc<Mailbox<AcceptorMessage>>,
    exports: Arc<[ExportInfo]>,
    /// Where the connections of each export go.
    routes: Vec<Route>,
    pending: Pending<Handshaking>,
    limit: ConnectionLimit,
    /// Whether clients may come in at all.
    opened: bool,
    /// Until when nobody is accepted, after the system had no room for one more.
    resting_until: Option<Instant>,
    /// Whether the listeners are watched: not while nobody can come in.
    watching: bool,
}

impl Acceptor {
    pub(crate) fn new(
        listeners: Vec<Listener>,
        exports: Arc<[ExportInfo]>,
        routes: Vec<Route>,
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
            resting_until: None,
            watching: false,
        })
    }

    /// Lets clients in until it is told to close.
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
                    handshaking => self.attend(handshaking),
                }
            }
            self.pending.end_late(clock::now());
            self.open_or_shut()?;
        }
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let now = clock::now();
        // That moment may have come since the listeners were left alone: then there is no wait.
        let room = self.pending.displaceable_at().filter(|_| !self.watching);
        let moments = [self.pending.late_at(), room, self.resting_until];
        let timeout = moments.into_iter().flatten().min().map(|at| {
            let wait = at.since(now).as_nanos();
            Timespec {
                tv_sec: (wait / 1_000_000_000) as i64,
                tv_nsec: (wait % 1_000_000_000) as i64,
            }
        });
        match epoll::wait(&self.epoll, spare_capacity(events), timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
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
                    self.welcome(now, fd);
                }
                // Nobody is there, or is not any more.
                Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => return,
                // Too many descriptors, or no memory: who waits stays readable, so look away.
                Err(_) => {
                    self.resting_until = Some(now + REST);
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, now: Instant, fd: OwnedFd) {
        let peer = peer_name(fd.as_fd());
        let Some(permit) = self.limit.admit(&peer) else {
            return;
        };
        let id = self.pending.next();
        let flags = epoll::EventFlags::IN;
        if epoll::add(&self.epoll, &fd, epoll::EventData::new_u64(id), flags).is_err() {
            return;
        }
        // Refused on unix sockets, where there is nothing to delay.
        let _ = sockopt::set_tcp_nodelay(&fd, true);
        let handshaking = Handshaking::new(fd, permit, Arc::clone(&self.exports));
        self.pending.enter(now, peer, handshaking);
        self.attend(id);
    }

    /// Goes on with a handshake as far as it can.
    fn attend(&mut self, id: u64) {
        let Some(mut place) = self.pending.take(id) else {
            return;
        };
        let handshaking = &mut place.handshaking;
        if handshaking.go_on().is_err() {
            return;
        }
        if handshaking.has_output() || matches!(handshaking.after, After::More) {
            self.watch(id, handshaking);
            self.pending.put_back(id, place);
        } else {
            self.hand_over(place);
        }
    }

    fn watch(&self, id: u64, handshaking: &Handshaking) {
        let flags = match handshaking.has_output() {
            true => epoll::EventFlags::OUT,
            false => epoll::EventFlags::IN,
        };
        // A descriptor that cannot be watched is sent away when its time is over.
        let _ = epoll::modify(
            &self.epoll,
            &handshaking.fd,
            epoll::EventData::new_u64(id),
            flags,
        );
    }

    /// Hands a handshaking who is through to a shard; one who has only looked around goes.
    fn hand_over(&self, place: Place<Handshaking>) {
        let Handshaking {
            fd,
            permit,
            after: After::Ready(negotiated),
            ..
        } = place.handshaking
        else {
            return;
        };
        // The descriptor goes on to another epoll; a shard that is gone closes it.
        let _ = epoll::delete(&self.epoll, &fd);
        if let Some(route) = self.routes.get(negotiated.export) {
            let handover = Handover {
                fd,
                disk: route.disk,
                peer: place.peer,
                negotiated,
                permit: Some(permit),
            };
            let _ = route.mailbox.send(Message::Connect(handover));
        }
    }

    /// Stops accepting while nobody can come in; who is outside waits in the backlog.
    fn open_or_shut(&mut self) -> io::Result<()> {
        let now = clock::now();
        self.resting_until = self.resting_until.filter(|until| *until > now);
        let rests = self.resting_until.is_some();
        let watch = self.opened && !rests && self.pending.has_room(now);
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
/// Tokens from here on, but for the mailbox's, are listeners; those below are pending.
const FIRST_LISTENER: u64 = 1 << 63;
/// Events taken per wait.
const EVENTS: usize = 64;
/// Connections accepted before the pending have their turn.
const ACCEPTS_PER_TURN: usize = 64;
/// How long nobody is accepted after the system had no room.
const REST: Duration = Duration::from_millis(100);
