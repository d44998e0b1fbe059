//! The frontends. Each frontend is a folder, whose files have the same names in all frontends: `wire`
//! (layout), `handshake` (how a client connects), `decode` (requests), `encode` (replies) and `transport`
//! (the descriptor). Outside this folder, only tests and other crates name a frontend.
//!
//! If you add a frontend, this is the only existing file of the data path that you change. `boundary` has the
//! trait that the frontend's session must implement. If clients of the frontend connect to a socket, add a
//! variant of [`Handshake`]. If a caller hands a descriptor over, add a [`Mechanism`].

pub(crate) mod boundary;
pub mod calls;
pub mod fuse;
mod kernel;
mod loopback;
pub mod nbd;
#[cfg(feature = "ublk")]
pub mod ublk;

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use dashpot_engine::{Instant, Outcome};
use dashpot_rules::CallFiles;
use dashpot_sys::seccomp::Listener;

use self::boundary::{Arrival, CallWork, Done, Frontend, ReceiveLimits, SendLimits};
pub use self::boundary::{Decoded, ExtentQuestion, NotServed, Operation, Request};
pub use self::calls::notified_calls;
pub(crate) use self::loopback::Loopback;
use crate::export::{ExportInfo, Followed, Follower, Mechanism, PathCounts, Uring};
use crate::store::Extent;

/// Receives the calls that a program makes on the files of disks. Passes each disk's sessions to the `connect`
/// of that disk, with the names of their clients.
pub(crate) fn follow(
    listener: Listener,
    files: impl Iterator<Item = (Followable, Connect)>,
    uring: Uring,
    follower: Box<dyn Follower>,
    clock: fn() -> Instant,
) -> io::Result<Followed> {
    let watched = |((files, counts), connect): (Followable, Connect)| calls::Watched {
        files,
        counts,
        connect: Box::new(move |peer, session| connect(peer, Session::other(session))),
    };
    calls::follow(
        listener,
        files.map(watched).collect(),
        uring,
        follower,
        clock,
    )
}

/// The files of a path disk, and the counts of the accesses to them that dashpot does not hold.
pub(crate) type Followable = (CallFiles, Arc<PathCounts>);

/// Hands a session to its shard, with the name of its client.
pub(crate) type Connect = Box<dyn Fn(String, Session) + Send + Sync>;

/// A connection after its handshake.
#[derive(Debug)]
pub(crate) enum Session {
    /// A session of NBD, which the shard calls directly. Calls through a table of functions would add several
    /// cache misses to each I/O at a depth of 1.
    Nbd(nbd::Session),
    /// A session of another frontend.
    Other(Box<dyn Frontend>),
}

impl Session {
    fn other(session: impl Frontend + 'static) -> Session {
        Session::Other(Box::new(session))
    }

    /// A session with the kernel, over a descriptor that a caller has handed over. Only the calling thread
    /// can use the session.
    pub(crate) fn of_kernel(
        mechanism: Mechanism,
        descriptor: OwnedFd,
    ) -> Result<Session, NotServed> {
        match mechanism {
            Mechanism::Loop => fuse::Session::new(descriptor).map(Session::other),
            Mechanism::Nbd => nbd::Session::of_kernel(descriptor).map(Session::Nbd),
            #[cfg(feature = "ublk")]
            Mechanism::Ublk => ublk::Session::new(descriptor).map(Session::other),
            #[cfg(not(feature = "ublk"))]
            Mechanism::Ublk => Err(NotServed::NotBuilt("ublk")),
        }
    }
}

/// Calls a method on the frontend's session that a [`Session`] contains.
macro_rules! each {
    ($it:ident, $session:ident => $call:expr) => {
        match $it {
            Session::Nbd($session) => $call,
            Session::Other($session) => $call,
        }
    };
}

impl Frontend for Session {
    #[inline]
    fn receive(&mut self, into: &mut Vec<u8>) -> Arrival {
        each!(self, session => session.receive(into))
    }

    #[inline]
    fn receive_limits(&self) -> ReceiveLimits {
        each!(self, session => session.receive_limits())
    }

    #[inline]
    fn may_hold_request(&self, received: &[u8]) -> bool {
        each!(self, session => session.may_hold_request(received))
    }

    #[inline]
    fn decode(&mut self, received: &[u8], export: &ExportInfo) -> Decoded {
        each!(self, session => session.decode(received, export))
    }

    #[inline]
    fn put_head(&self, heads: &mut Vec<u8>, request: &Request, outcome: Outcome) {
        each!(self, session => session.put_head(heads, request, outcome));
    }

    fn extents_reply(&self, question: &ExtentQuestion, extents: &[Extent]) -> Vec<u8> {
        each!(self, session => session.extents_reply(question, extents))
    }

    #[inline]
    fn send(&mut self, bytes: &[IoSlice<'_>]) -> rustix::io::Result<usize> {
        each!(self, session => session.send(bytes))
    }

    #[inline]
    fn send_limits(&self) -> SendLimits {
        each!(self, session => session.send_limits())
    }

    #[inline]
    fn begin(&mut self, request: &Request, work: CallWork, done: Done) -> Option<Done> {
        each!(self, session => session.begin(request, work, done))
    }

    #[inline]
    fn flush(&mut self) -> rustix::io::Result<()> {
        each!(self, session => session.flush())
    }

    fn fail_all(&mut self) -> bool {
        each!(self, session => session.fail_all())
    }
}

impl AsFd for Session {
    fn as_fd(&self) -> BorrowedFd<'_> {
        each!(self, session => session.as_fd())
    }
}

/// A handshake with a client on a socket, as a state machine. It has no socket itself: the acceptor receives
/// and sends the bytes.
#[derive(Debug)]
pub(crate) enum Handshake {
    Nbd(nbd::handshake::Handshake),
}

/// The state of a handshake.
#[derive(Debug)]
pub(crate) enum Progress {
    /// The client must send more.
    More,
    /// Close the connection once the output is sent.
    Close,
    /// Serve the connection once the output is sent.
    Ready(Agreed),
}

/// The result of a handshake.
#[derive(Debug)]
pub(crate) struct Agreed {
    /// The index of the chosen export.
    pub(crate) export: usize,
    /// The bytes after the handshake: the beginning of the client's first requests.
    pub(crate) left_over: Vec<u8>,
    protocol: Protocol,
}

/// The protocol and the features that the connection continues with.
#[derive(Debug)]
enum Protocol {
    Nbd(nbd::handshake::Features),
}

impl Handshake {
    /// Begins a handshake with a client that has connected to a socket. The client will choose one of
    /// these exports. Also returns the bytes of the server's greeting.
    pub(crate) fn on_socket(exports: Arc<[ExportInfo]>) -> (Handshake, Vec<u8>) {
        let handshake = nbd::handshake::Handshake::new(exports);
        (Handshake::Nbd(handshake), nbd::handshake::GREETING.to_vec())
    }

    /// Takes received bytes, and appends to `output` the bytes that the caller must send.
    pub(crate) fn input(&mut self, bytes: &[u8], output: &mut Vec<u8>) -> Progress {
        let Handshake::Nbd(handshake) = self;
        match handshake.input(bytes, output) {
            nbd::handshake::Progress::More => Progress::More,
            nbd::handshake::Progress::Close => Progress::Close,
            nbd::handshake::Progress::Ready(negotiated) => Progress::Ready(Agreed {
                export: negotiated.export,
                left_over: negotiated.left_over,
                protocol: Protocol::Nbd(negotiated.features),
            }),
        }
    }
}

impl Agreed {
    /// Makes the session that takes over the socket. Also returns the bytes that have arrived after the
    /// handshake.
    pub(crate) fn session(self, fd: OwnedFd) -> (Session, Vec<u8>) {
        let Protocol::Nbd(features) = self.protocol;
        (
            Session::Nbd(nbd::Session::new(fd, features)),
            self.left_over,
        )
    }
}
