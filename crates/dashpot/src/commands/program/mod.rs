//! The program of `run` whose calls are the I/Os of disks with directories (`-d wal=path:DIR`).
//!
//! The process that becomes the program installs the filter, and sends the filter's listener to dashpot over
//! a socket in dashpot's private directory. dashpot first starts a [keeper], which holds a copy of the
//! listener. Then dashpot begins to receive calls, and lets the process become the program.

mod descriptors;
pub(super) mod filtered;
pub(crate) mod keeper;
mod ledger;
pub(crate) mod lookups;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context;
use dashpot_engine::OpSet;
use dashpot_export::{Counts, Followed, Follower, Handle, Uring, complain};
use dashpot_rules::format_types;
use dashpot_sys::seccomp::{Call, Listener, Lookup, User};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use tokio::net::UnixListener;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use self::descriptors::GO;
use self::keeper::Keeper;
use self::ledger::Ledger;
use self::lookups::Lookups;
use crate::cli::OnLoss;

/// The wait for the process that becomes the program, and then for the end of the program.
pub(super) struct Program {
    socket: PathBuf,
    on_loss: OnLoss,
    /// The types of calls that the filter notifies.
    types: OpSet,
    following: JoinHandle<anyhow::Result<Following>>,
}

/// A program whose calls dashpot receives.
struct Following {
    followed: Followed,
    keeper: Keeper,
}

impl Program {
    /// Awaits the process that becomes the program. `directory` is dashpot's private directory.
    pub(super) fn awaited(
        directory: &Path,
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
        let following = tokio::spawn(async move {
            let (stream, _) = listener.accept().await?;
            let stream = stream.into_std()?;
            stream.set_nonblocking(false)?;
            spawn_blocking(move || follow(&stream, &handle, on_loss, uring)).await?
        });
        Ok(Program {
            socket,
            on_loss,
            types,
            following,
        })
    }

    /// Where the process connects.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The types of calls that the program's filter notifies, in words.
    pub(super) fn types(&self) -> String {
        format_types(self.types)
    }

    /// Whether the program ends with dashpot.
    pub(super) fn dies_along(&self) -> bool {
        self.on_loss == OnLoss::Kill
    }

    /// The program's first process has ended. From here on the keeper lets the calls of the program's
    /// descendants go on.
    pub(super) async fn end(mut self) {
        match timeout(BEGINNING, &mut self.following).await {
            Ok(Ok(Ok(following))) => following.end(),
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
    }
}

/// Sentences about the calls that did not become zios.
fn sentences(counts: &Counts) -> Vec<String> {
    let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
    let rows = [
        (
            count(&counts.unheld),
            "calls were not held, because their files were not known",
        ),
        (
            count(&counts.unsynced),
            "syncs could not be done before they were held, although a rule asked for --mode floor",
        ),
        (
            count(&counts.synced_opens),
            "files were opened with O_SYNC or O_DSYNC: writes to them are of the type write",
        ),
        (count(&counts.submitted), "I/Os by io_submit were not held"),
        (
            count(&counts.rings),
            "rings of io_uring were asked for: the I/Os of a ring are not held",
        ),
        (
            count(&counts.mappings),
            "mappings were shared and writable: what is stored there is not held, msync is",
        ),
    ];
    let some = rows.into_iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}"))
        .collect()
}

fn follow(
    stream: &UnixStream,
    handle: &Handle,
    on_loss: OnLoss,
    uring: Uring,
) -> anyhow::Result<Following> {
    let listener = descriptors::receive(stream).context("the program's filter did not arrive")?;
    let peer = socket_peercred(stream)?;
    let (uid, pid) = (peer.uid.as_raw(), peer.pid.as_raw_nonzero());
    let ledger = Ledger::new()?;
    let keeper = Keeper::start(listener.as_fd(), ledger.as_fd(), on_loss)
        .context("cannot start the keeper of the program's calls")?;
    let lookups = Lookups::default();
    let followed = handle
        .follow(
            Listener::from_fd(listener),
            &format!("uid={uid} pid={pid}"),
            uring,
            Box::new(ForProgram { ledger, lookups }),
        )
        .context("cannot receive the program's calls")?;
    (&*stream).write_all(&[GO])?;
    Ok(Following { followed, keeper })
}

/// Notes each call for the keeper, and looks into processes of other users.
struct ForProgram {
    ledger: Ledger,
    lookups: Lookups,
}

impl Follower for ForProgram {
    fn received(&mut self, call: &Call) {
        self.ledger.note(call);
    }

    fn say(&mut self, sentence: &str) {
        complain(format_args!("dashpot: {sentence}"));
    }

    fn look_up_as(&mut self, user: User, lookup: &Lookup) -> Result<Vec<u8>, Errno> {
        self.lookups.ask(user, lookup)
    }
}

/// How long dashpot, on a busy host, may take to begin to receive the calls of a program that has already
/// ended.
const BEGINNING: Duration = Duration::from_secs(1);
