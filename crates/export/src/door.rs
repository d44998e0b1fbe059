//! The door: one thread that accepts connections and shakes hands, all at once and without
//! waiting for any of them, and then hands each to the shard of its export.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dashpot_engine::{Duration, Instant};
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, SocketFlags, sockopt};

use crate::clock;
use crate::listen::Listener;
use crate::mailbox::Mailbox;
use crate::nbd::ExportInfo;
use crate::nbd::setup::{GREETING, Negotiated, Progress, Setup};
use crate::routes::Route;
use crate::shard::{Handover, Message};

/// What the door is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DoorMessage {
    /// Let clients in. Until then they wait in the backlog.
    Open,
    /// Let nobody in any more.
    Close,
}

pub(crate) struct Door {
    epoll: OwnedFd,
    listeners: Vec<Listener>,
    mailbox: Arc<Mailbox<DoorMessage>>,
    exports: Arc<[ExportInfo]>,
    /// Where the connections of each export go.
    routes: Vec<Route>,
    guests: HashMap<u64, Guest>,
    /// When the guests must be through, in the order in which they came.
    deadlines: VecDeque<(Instant, u64)>,
    next: u64,
    /// Whether clients may come in at all.
    opened: bool,
    /// Until when nobody is accepted, after the system had no room for one more.
    resting_until: Option<Instant>,
    /// Whether the listeners are watched: not while there are as many guests as there may be.
    watching: bool,
}

/// Somebody whose handshake is going on.
struct Guest {
    fd: OwnedFd,
    peer: String,
    setup: Setup,
    output: Vec<u8>,
    sent: usize,
    /// What follows when the output is sent.
    after: After,
}

enum After {
    More,
    Close,
    Ready(Negotiated),
}

impl Door {
    pub(crate) fn new(
        listeners: Vec<Listener>,
        exports: Arc<[ExportInfo]>,
        routes: Vec<Route>,
        mailbox: Arc<Mailbox<DoorMessage>>,
    ) -> io::Result<Door> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(MAILBOX);
        epoll::add(&epoll, &*mailbox, data, epoll::EventFlags::IN)?;
        for (at, listener) in listeners.iter().enumerate() {
            let data = epoll::EventData::new_u64(FIRST_LISTENER + at as u64);
            epoll::add(&epoll, listener, data, epoll::EventFlags::empty())?;
        }
        Ok(Door {
            epoll,
            listeners,
            mailbox,
            exports,
            routes,
            guests: HashMap::new(),
            deadlines: VecDeque::new(),
            next: 0,
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
                        if messages.contains(&DoorMessage::Close) {
                            return Ok(());
                        }
                        self.opened |= !messages.is_empty();
                    }
                    listener if listener >= FIRST_LISTENER => {
                        self.accept((listener - FIRST_LISTENER) as usize);
                    }
                    guest => self.attend(guest),
                }
            }
            self.send_away_the_slow();
            self.open_or_shut()?;
        }
    }

    fn wait(&self, events: &mut Vec<epoll::Event>) -> io::Result<()> {
        let guest = self.deadlines.front().map(|(at, _)| *at);
        let timeout = guest.into_iter().chain(self.resting_until).min().map(|at| {
            let wait = at.since(clock::now()).as_nanos();
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
        while self.guests.len() < GUESTS_MAX {
            match net::accept_with(&self.listeners[listener], flags) {
                Ok(fd) => self.welcome(fd),
                // Nobody is there, or is not any more.
                Err(Errno::AGAIN | Errno::CONNABORTED | Errno::INTR) => return,
                // Too many descriptors, or no memory: who waits stays readable, so look away.
                Err(_) => {
                    self.resting_until = Some(clock::now() + REST);
                    return;
                }
            }
        }
    }

    fn welcome(&mut self, fd: OwnedFd) {
        let id = self.next;
        self.next += 1;
        let flags = epoll::EventFlags::IN;
        if epoll::add(&self.epoll, &fd, epoll::EventData::new_u64(id), flags).is_err() {
            return;
        }
        // Refused on unix sockets, where there is nothing to delay.
        let _ = sockopt::set_tcp_nodelay(&fd, true);
        let guest = Guest {
            peer: peer_name(fd.as_fd()),
            fd,
            setup: Setup::new(Arc::clone(&self.exports)),
            output: GREETING.to_vec(),
            sent: 0,
            after: After::More,
        };
        self.guests.insert(id, guest);
        self.deadlines.push_back((clock::now() + HANDSHAKE_MAX, id));
        self.attend(id);
    }

    /// Goes on with a handshake as far as it can.
    fn attend(&mut self, id: u64) {
        let Some(mut guest) = self.guests.remove(&id) else {
            return;
        };
        if guest.go_on().is_err() {
            return;
        }
        if guest.sent < guest.output.len() || matches!(guest.after, After::More) {
            self.watch(id, &guest);
            self.guests.insert(id, guest);
        } else if let After::Ready(negotiated) = guest.after {
            self.hand_over(guest.fd, guest.peer, negotiated);
        }
    }

    fn watch(&self, id: u64, guest: &Guest) {
        let flags = match guest.sent < guest.output.len() {
            true => epoll::EventFlags::OUT,
            false => epoll::EventFlags::IN,
        };
        // A descriptor that cannot be watched is sent away when its time is over.
        let _ = epoll::modify(&self.epoll, &guest.fd, epoll::EventData::new_u64(id), flags);
    }

    fn hand_over(&self, fd: OwnedFd, peer: String, negotiated: Negotiated) {
        // The descriptor goes on to another epoll; a shard that is gone closes it.
        let _ = epoll::delete(&self.epoll, &fd);
        if let Some(route) = self.routes.get(negotiated.export) {
            let disk = route.disk;
            let handover = Handover {
                fd,
                disk,
                peer,
                negotiated,
            };
            let _ = route.mailbox.send(Message::Connect(handover));
        }
    }

    fn send_away_the_slow(&mut self) {
        let now = clock::now();
        while let Some((at, id)) = self.deadlines.front().copied() {
            if at > now && self.guests.contains_key(&id) {
                return;
            }
            self.deadlines.pop_front();
            self.guests.remove(&id);
        }
    }

    /// Stops accepting while there are too many guests; who is outside waits in the backlog.
    fn open_or_shut(&mut self) -> io::Result<()> {
        self.resting_until = self.resting_until.filter(|until| *until > clock::now());
        let rests = self.resting_until.is_some();
        let watch = self.opened && !rests && self.guests.len() < GUESTS_MAX;
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

impl Guest {
    /// Sends what there is, then reads and answers, until one of the two would wait or the others
    /// have waited long enough.
    fn go_on(&mut self) -> rustix::io::Result<()> {
        for _ in 0..READS_PER_TURN {
            if !self.send()? || !matches!(self.after, After::More) {
                return Ok(());
            }
            if !self.receive()? {
                return Ok(());
            }
        }
        self.send().map(drop)
    }

    /// Whether everything is sent.
    fn send(&mut self) -> rustix::io::Result<bool> {
        while self.sent < self.output.len() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match net::send(&self.fd, &self.output[self.sent..], flags) {
                Ok(sent) => self.sent += sent,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.output.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Whether there was something.
    fn receive(&mut self) -> rustix::io::Result<bool> {
        let mut bytes = Vec::with_capacity(RECEIVE_LENGTH);
        match net::recv(&self.fd, spare_capacity(&mut bytes), RecvFlags::DONTWAIT) {
            Ok((0, _)) => return Err(Errno::CONNRESET),
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(false),
            Err(error) => return Err(error),
        }
        self.after = match self.setup.input(&bytes, &mut self.output) {
            Progress::More => After::More,
            Progress::Close => After::Close,
            Progress::Ready(negotiated) => After::Ready(negotiated),
        };
        Ok(true)
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
/// Tokens from here on, but for the mailbox's, are listeners; those below are guests.
const FIRST_LISTENER: u64 = 1 << 63;
/// Events taken per wait.
const EVENTS: usize = 64;
/// Handshakes that go on at once.
const GUESTS_MAX: usize = 256;
/// How long one may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Times that one guest is read before the others have their turn.
const READS_PER_TURN: usize = 4;
/// How long nobody is accepted after the system had no room.
const REST: Duration = Duration::from_millis(100);
/// Bytes read at a time.
const RECEIVE_LENGTH: usize = 16 << 10;
