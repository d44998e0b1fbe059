//! The process that ends I/O that would otherwise wait for ever after a daemon was killed.
//!
//! When a daemon is killed, the kernel's NBD client keeps new I/O for `RECONNECT_SECONDS`, but keeps the I/O
//! in flight until the device ends. A program that waits for such I/O cannot even be killed. So `attach`
//! starts this process, the guard, for each device. The guard holds no connection to the daemon, opens no
//! device, and sleeps until the daemon has ended. If I/O then stays in flight for longer than
//! `RECONNECT_SECONDS`, and no other daemon has taken the device over, the guard disconnects the device, and
//! the kernel fails the I/O. The guard unmounts nothing: after an unmount, a program that goes on writing
//! would write into the directory that the mount covered.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::down;
use crate::netlink::RECONNECT_SECONDS;
use crate::place::{LockedDirectory, Record, records};
use crate::process::Process;
use crate::state::waits_now;
use crate::sysfs::queue_of;

/// The name (`argv[0]`) under which dashpot starts the guard. The guard's only argument is the node.
const GUARDS: &str = "dashpot-guards";

/// Starts the guard of a device.
pub(crate) fn start(node: &str) -> anyhow::Result<()> {
    let mut command = Command::new("/proc/self/exe");
    // The guard must outlive the command that starts it, so a Ctrl-C must end only that command.
    let command = command.arg0(GUARDS).arg(node).process_group(0);
    let command = command.current_dir("/").stdin(Stdio::null());
    let command = command.stdout(Stdio::null()).stderr(Stdio::null());
    command
        .spawn()
        .map(drop)
        .with_context(|| format!("cannot start the process that guards {node}"))
}

/// Becomes the guard, if dashpot was started for that.
pub fn become_guard() -> Option<ExitCode> {
    let mut words = std::env::args();
    if words.next()? != GUARDS {
        return None;
    }
    let node = words.next()?;
    Some(match guard(&node) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn guard(node: &str) -> anyhow::Result<()> {
    let Some((file, Some(daemon))) = attached(node) else {
        return Ok(());
    };
    let place = file.parent().context("a device without a place")?;
    while is_of(node, daemon) && daemon.is_alive() {
        wait_for_change(place, daemon)?;
    }
    let mut since = None;
    while is_of(node, daemon) {
        let has_waited = has_waited(node, &mut since);
        if has_waited && end(node, daemon).is_ok() {
            return Ok(());
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// A path in the directory of a device's attachment, and the daemon that serves the device.
fn attached(node: &str) -> Option<(PathBuf, Option<Process>)> {
    let mut all = records().into_iter();
    let (file, record) = all.find(|(_, record)| record.node == node)?;
    Some((file, record.daemon))
}

/// Whether a node is still attached, and no other daemon has taken it over.
fn is_of(node: &str, daemon: Process) -> bool {
    attached(node).is_some_and(|(_, its)| its == Some(daemon))
}

/// Sleeps until the daemon ends, or the directory of the attachment changes or is removed.
fn wait_for_change(place: &Path, daemon: Process) -> anyhow::Result<()> {
    let pid = i32::try_from(daemon.pid()).ok().and_then(Pid::from_raw);
    let pid = pid.context("a daemon without a number")?;
    let process = pidfd_open(pid, PidfdFlags::empty());
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    let changes = inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::DELETE_SELF;
    let (Ok(process), Ok(_)) = (process, inotify::add_watch(&watch, place, changes)) else {
        // This kernel lacks `pidfd_open`, or the daemon is gone, or the directory is gone. The caller finds
        // out whether one of the two is gone.
        thread::sleep(LOOK_EVERY);
        return Ok(());
    };
    // The daemon may have ended, and the directory may have gone, before the watch began.
    if daemon.is_alive() && place.exists() {
        let watched = [&process, &watch].map(|it| PollFd::new(it, PollFlags::IN));
        poll(&mut { watched }, None)?;
    }
    Ok(())
}

/// Whether every check has found I/O in flight, for longer than the kernel keeps new I/O. `since` is the time
/// of the first of these checks.
fn has_waited(node: &str, since: &mut Option<Instant>) -> bool {
    if queue_of(node).is_none_or(|queue| queue.in_flight == 0) {
        *since = None;
        return false;
    }
    let since = *since.get_or_insert_with(Instant::now);
    since.elapsed() >= Duration::from_secs(RECONNECT_SECONDS) + MARGIN
}

/// Disconnects the device, unless another daemon has taken it over in the meantime.
fn end(node: &str, daemon: Process) -> anyhow::Result<()> {
    let is_meant = |record: &Record| record.node == node && record.daemon == Some(daemon);
    for (place, record) in LockedDirectory::meant(is_meant)? {
        if waits_now(&place, &record) {
            down::free(&record)?;
        }
    }
    Ok(())
}

/// The guard waits this much longer than the kernel, because the kernel may fail the I/O late. Another daemon
/// can still take the device over after the kernel has failed I/O, but not after a disconnect.
const MARGIN: Duration = Duration::from_secs(5);
/// The interval between two checks of a device whose daemon is gone.
const LOOK_EVERY: Duration = Duration::from_secs(1);
