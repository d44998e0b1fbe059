//! The program that `run` starts, if its calls are the I/Os of disks with directories (`-d wal=path:DIR`).
//!
//! The process that becomes the program installs the filter, and sends the filter's listener to dashpot over
//! a socket in dashpot's private directory. dashpot first starts a [keeper], which holds a copy of the
//! listener. Then dashpot begins to receive calls, and lets the process become the program.

mod descriptors;
pub(super) mod filtered;
pub(crate) mod keeper;
mod ledger;
mod tree;

use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use dashpot_cli::OnLoss;
use dashpot_engine::OpSet;
use dashpot_export::{Counts, DiskSnapshot, Followed, Follower, Handle, Uring, complain};
use dashpot_rules::{Address, format_types, shell_word, short_time};
use dashpot_sys::seccomp::{Call, CallId};
use dashpot_text::calls::interrupted;
use rustix::net::sockopt::socket_peercred;
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use self::descriptors::GO;
use self::keeper::Keeper;
use self::ledger::Ledger;

/// The program that `run` starts, from the wait for its first process until that process has ended.
pub(super) struct Program {
    handle: Handle,
    /// The address at which commands reach dashpot's API.
    api: Address,
    socket: PathBuf,
    /// The types of calls that the filter reports to dashpot.
    types: OpSet,
    following: JoinHandle<anyhow::Result<Option<Following>>>,
}

/// A program whose calls dashpot receives.
struct Following {
    followed: Followed,
    keeper: Keeper,
}

impl Program {
    /// Begins to wait for the process that becomes the program. `directory` is dashpot's private directory.
    pub(super) fn awaited(
        directory: &Path,
        api: &Address,
        handle: Handle,
        on_loss: OnLoss,
        uring: Uring,
    ) -> anyhow::Result<Program> {
        let followed = handle
            .disks()
            .iter()
            .filter_map(|disk| disk.followed.as_ref());
        let types = followed.map(|files| files.types);
        let types = types.fold(OpSet::EMPTY, OpSet::union);
        let socket = directory.join("calls.sock");
        let listener = UnixListener::bind(&socket)
            .with_context(|| format!("cannot listen at {}", socket.display()))?;
        let receiving = handle.clone();
        let following = tokio::spawn(async move {
            let (stream, _) = listener.accept().await?;
            let stream = stream.into_std()?;
            stream.set_nonblocking(false)?;
            spawn_blocking(move || follow(&stream, &receiving, on_loss, uring)).await?
        });
        Ok(Program {
            handle,
            api: api.clone(),
            socket,
            types,
            following,
        })
    }

    /// The path of the socket on which dashpot waits for the process that becomes the program.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The types of calls that the program's filter reports to dashpot, as text.
    pub(super) fn types(&self) -> String {
        format_types(self.types)
    }

    /// Prints which disks have held a call for at least this long. A thread receives most signals only when
    /// its call has ended, so the program may seem to ignore them.
    pub(super) async fn say_what_holds(&self, least: Duration) {
        for (number, disk) in self.handle.disks().iter().enumerate() {
            let age = match disk.followed {
                Some(_) => self.oldest(number).await,
                None => None,
            };
            if let Some(age) = age.filter(|age| *age >= least.as_nanos() as u64) {
                let (name, age) = (&disk.name, short_time(age));
                let api = shell_word(&self.api.to_string()).into_owned();
                complain(format_args!(
                    "dashpot: '{name}' has held a call of the program for {age}, and until the call ends the \
                     program gets only a signal that kills it: 'dashpot clear all --release --api {api}' ends \
                     the hold"
                ));
            }
        }
    }

    /// The age of the oldest call that a disk holds, in nanoseconds.
    async fn oldest(&self, disk: usize) -> Option<u64> {
        let (answer, answered) = oneshot::channel();
        let send = |snapshot: DiskSnapshot| drop(answer.send(snapshot));
        self.handle.snapshot(disk, 1, send).ok()?;
        let snapshot = answered.await.ok()?;
        let oldest = snapshot.in_flight.first()?;
        Some(snapshot.at.since(oldest.arrived).as_nanos())
    }

    /// Stops receiving calls, because the program's first process has ended. From now on, the keeper lets the
    /// calls of the program's descendants go on.
    pub(super) async fn end(mut self) {
        match timeout(BEGINNING, &mut self.following).await {
            Ok(Ok(Ok(Some(following)))) => following.end(),
            // The process could not install its filter, and has printed why.
            Ok(Ok(Ok(None))) => {}
            Ok(Ok(Err(error))) => complain(format_args!("dashpot: {error:#}")),
            // The thread has panicked, and has printed its message.
            Ok(Err(_)) => {}
            // The program never installed its filter.
            Err(_) => self.following.abort(),
        }
    }
}

impl Following {
    fn end(self) {
        for sentence in sentences(self.followed.counts()) {
            complain(format_args!("dashpot: {sentence}"));
        }
        drop(self.followed);
        self.keeper.take_over();
        // Keep the connection open until this process ends: calls are still in flight, and the end of the
        // connection would tell the keeper that dashpot has ended.
        std::mem::forget(self.keeper);
    }
}

/// Sentences about the calls that were not held, or not as the rules demanded.
fn sentences(counts: &Counts) -> Vec<String> {
    let unheld = counts.unheld.counted().into_iter();
    let mut sentences: Vec<String> = unheld
        .map(|(unheld, count)| format!("{}: {}", unheld.counted(count), unheld.remedy()))
        .collect();
    let first = "could not be done first, although a rule asked for --mode floor";
    match counts.unsynced.load(Ordering::Relaxed) {
        0 => {}
        1 => sentences.push(format!("1 sync was held, but {first}")),
        count => sentences.push(format!("{count} syncs were held, but {first}")),
    }
    match counts.unshortened.load(Ordering::Relaxed) {
        0 => {}
        1 => sentences.push(format!("1 read or write {WHOLE}")),
        count => sentences.push(format!("{count} reads and writes {WHOLE}")),
    }
    sentences.extend(interrupted(counts.interrupted.load(Ordering::Relaxed)));
    sentences.extend(slow(counts));
    sentences
}

/// A sentence about the calls that no disk holds and that waited long for dashpot. On a busy host each call may
/// wait for some milliseconds, so the longest wait decides whether the user is told.
fn slow(counts: &Counts) -> Option<String> {
    let [calls, longest] =
        [&counts.slow, &counts.slowest_ns].map(|count| count.load(Ordering::Relaxed));
    (longest >= TOLD_NS).then(|| {
        let longest = short_time(longest);
        format!(
            "dashpot's look-ups delayed {calls} calls that no disk holds by more than 1 ms, and one of them by \
             {longest}"
        )
    })
}

/// Begins to receive the calls of the process at the other end of the socket. `None` if the process has ended
/// without a filter.
fn follow(
    stream: &UnixStream,
    handle: &Handle,
    on_loss: OnLoss,
    uring: Uring,
) -> anyhow::Result<Option<Following>> {
    let listener = match descriptors::receive_listener(stream) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        received => received.context("the program's filter did not arrive")?,
    };
    let peer = socket_peercred(stream)?;
    let pid = peer.pid.as_raw_nonzero();
    let ledger = Ledger::new()?;
    let keeper = Keeper::start(&listener, &ledger, on_loss, pid)
        .context("cannot start the keeper of the program's calls")?;
    let for_program = ForProgram {
        ledger,
        keeper: keeper.share()?,
    };
    let followed = handle
        .follow(listener, uring, Box::new(for_program))
        .context("cannot receive the program's calls")?;
    (&*stream).write_all(&[GO])?;
    Ok(Some(Following { followed, keeper }))
}

/// Notes each call for the keeper.
#[derive(Debug)]
struct ForProgram {
    ledger: Ledger,
    keeper: Keeper,
}

impl Follower for ForProgram {
    fn received(&self, call: &Call) -> bool {
        self.ledger.note(call.id, call.thread)
    }

    fn answered(&self, call: CallId) {
        self.ledger.erase(call);
    }

    fn say(&self, sentence: &str) {
        complain(format_args!("dashpot: {sentence}"));
    }

    /// Tells the keeper to take over, because the calls of a program that keeps running must not wait for
    /// ever.
    fn ended(&self) {
        self.keeper.take_over();
    }
}

const WHOLE: &str = "could not be shortened, although a rule asked for --short, and went on whole";
/// If dashpot delayed a call that no disk holds by this many nanoseconds, it says so.
const TOLD_NS: u64 = 100_000_000;
/// On a busy host, a short program may end before dashpot has begun to receive its calls. dashpot then waits
/// at most this long until it has begun.
const BEGINNING: Duration = Duration::from_secs(1);
