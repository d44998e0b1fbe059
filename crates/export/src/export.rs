//! An export: a disk or a volume of the engine that clients can reach by its name.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dashpot_engine::Device;
use dashpot_sys::seccomp::{Call, Lookup, User};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;

/// The id of an export within its shard. A shard keeps connections, clients, stalls and budgets separately
/// for each export. It looks up the device behind the export only to talk to the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExportId(pub(crate) u32);

/// One export, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// The name by which clients ask for the export, at most 4,096 bytes.
    pub name: String,
    /// A description for people, on one line. The description may be empty.
    pub description: String,
    /// The size in bytes. If the size is not a multiple of `block`, clients cannot reach the last
    /// bytes.
    pub size: u64,
    /// The size of a block, in bytes. Every read and write consists of whole blocks. The size is a power of
    /// two, from 1 byte to 64 KiB.
    pub block: u32,
    /// The smallest write, in bytes, that needs no read-modify-write, as far as the store knows.
    pub preferred: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether the export has power. All clones of an `ExportInfo` share this value.
    pub power: Power,
}

/// How a block device of the host reaches its export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A loop device over a FUSE file.
    Loop,
    /// The kernel's NBD client.
    Nbd,
    /// The kernel's ublk driver.
    Ublk,
}

/// The part of dashpot that started a program, and is told about the program's calls. The receiver of the
/// calls drops this value when no more calls can come.
pub trait Follower: Send {
    /// Notes a call that dashpot has received and has not yet acted on.
    fn received(&mut self, call: &Call);

    /// Tells the user, in one sentence, about calls that dashpot does not hold. Each sentence comes only
    /// once.
    fn say(&mut self, sentence: &str);

    /// Does a lookup with the rights of another user, whose processes this process may not inspect.
    fn look_up_as(&mut self, user: &User, lookup: &Lookup) -> Result<Vec<u8>, Errno>;
}

/// How dashpot answers a program that asks for an io_uring, whose I/Os dashpot cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uring {
    /// Dashpot counts the ring, and tells the user.
    Count,
    /// Dashpot counts the ring, tells the user, and lets the program's call fail with `ENOSYS`. Most programs
    /// then use other calls.
    Refuse,
}

/// A program whose calls dashpot receives. Soon after this value is dropped, dashpot receives no more calls.
/// The shards still answer the calls that dashpot has received by then.
#[derive(Debug)]
pub struct Followed {
    stop: Arc<OwnedFd>,
    counts: Arc<Counts>,
}

/// Counts of a program's actions that dashpot cannot hold, or cannot hold as the rules demand.
#[derive(Debug, Default)]
pub struct Counts {
    /// How many calls dashpot did not hold, because it did not know their files.
    pub unheld: AtomicU64,
    /// The number of syncs that a rule with `--mode floor` held although dashpot could not do the sync itself
    /// first.
    pub unsynced: AtomicU64,
    /// How often the program opened a disk's file with `O_SYNC` or `O_DSYNC`. Each write to such a file is
    /// also a sync, so a disk that holds only syncs misses the writes.
    pub synced_opens: AtomicU64,
    /// How many I/Os on files of disks the program started with `io_submit`.
    pub submitted: AtomicU64,
    /// How many io_urings the program asked for, whichever files their I/Os reach.
    pub rings: AtomicU64,
    /// How many writable shared mappings of disks' files the program made.
    pub mappings: AtomicU64,
}

impl Followed {
    pub(crate) fn new() -> io::Result<Followed> {
        Ok(Followed {
            stop: Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?),
            counts: Arc::default(),
        })
    }

    /// The counts of the program's actions that dashpot could not hold as the rules demand.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// A descriptor that becomes readable when the receiver has to stop.
    pub(crate) fn stop(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.stop)
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        // The descriptor's counter is far from its maximum, so this write never fails.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
    }
}

/// An export that a shard is to serve, and the engine's device behind it.
pub(crate) struct Served {
    pub(crate) info: ExportInfo,
    pub(crate) device: Device,
}

/// The power of an export. The power is on until the export's shard switches the power off.
#[derive(Clone, Debug, Default)]
pub struct Power {
    off: Arc<AtomicBool>,
}

impl Power {
    /// Whether the power is off. No client may connect while it is off.
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Acquire)
    }

    /// Switches the power on or off.
    pub(crate) fn switch(&self, on: bool) {
        self.off.store(!on, Ordering::Release);
    }
}

impl PartialEq for Power {
    fn eq(&self, other: &Power) -> bool {
        self.is_off() == other.is_off()
    }
}

impl Eq for Power {}
