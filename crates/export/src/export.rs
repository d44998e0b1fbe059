//! An export: a disk or a volume of the engine that clients can reach by its name.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dashpot_engine::Device;
use dashpot_sys::seccomp::{Call, CallId};
use rustix::event::{EventfdFlags, eventfd};

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

/// The part of dashpot that started a program, and is told about the program's calls. Several threads tell it.
pub trait Follower: std::fmt::Debug + Send + Sync {
    /// Notes a call that dashpot has received and has not yet acted on. Returns false if there is no room for
    /// the note. dashpot then lets the call go on at once.
    fn received(&self, call: &Call) -> bool;

    /// Forgets a call, because dashpot has answered it, or because it has ended.
    fn answered(&self, call: CallId);

    /// Tells the user, in one sentence, about calls that dashpot does not hold. Each sentence comes only
    /// once.
    fn say(&self, sentence: &str);

    /// Hears that dashpot receives no more calls. It can hear this several times.
    fn ended(&self);
}

/// How dashpot answers a program that asks for an io_uring or for a context of `io_submit`, whose I/Os dashpot
/// cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uring {
    /// Dashpot counts the rings, and the I/Os by `io_submit`, and tells the user.
    Count,
    /// Dashpot tells the user, and lets the program's call fail with `ENOSYS`. Most programs then use other
    /// calls.
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
    /// The accesses that dashpot did not hold. An access to several disks counts once.
    pub unheld: UnheldCounts,
    /// The counts of each path disk, in the order of the disks. An access that may have been to any disk, or a
    /// call of which dashpot does not know the disk, counts for each.
    pub(crate) of_disks: Vec<Arc<PathCounts>>,
    /// The number of syncs that a rule with `--mode floor` held although dashpot could not do the sync itself
    /// first.
    pub unsynced: AtomicU64,
    /// The number of reads and writes that went on whole although a rule with `--short` had chosen them.
    pub unshortened: AtomicU64,
    /// How many calls a signal ended before dashpot received them, or before their hold was over. Such a call
    /// begins again after the signal's handler, or fails with `EINTR`, or its thread was killed.
    pub interrupted: AtomicU64,
    /// How many calls that no disk holds waited for dashpot longer than a millisecond.
    pub slow: AtomicU64,
    /// The longest wait for dashpot of a call that no disk holds, in nanoseconds.
    pub slowest_ns: AtomicU64,
}

impl Counts {
    /// Counts accesses to these path disks.
    pub(crate) fn add(&self, disks: &[usize], unheld: Unheld, more: u64) {
        self.unheld.add(unheld, more);
        for disk in disks {
            self.of_disks[*disk].unheld.add(unheld, more);
        }
    }

    /// Notes that the kernel does not number calls that begin again after a signal.
    pub(crate) fn miss_interrupted(&self) {
        for disk in &self.of_disks {
            disk.counts_all.store(false, Ordering::Relaxed);
        }
    }

    /// Counts calls that a signal ended before dashpot received them.
    pub(crate) fn add_interrupted(&self, more: u64) {
        self.interrupted.fetch_add(more, Ordering::Relaxed);
        for disk in &self.of_disks {
            disk.interrupted.fetch_add(more, Ordering::Relaxed);
        }
    }
}

impl Followed {
    pub(crate) fn new(of_disks: Vec<Arc<PathCounts>>) -> io::Result<Followed> {
        Ok(Followed {
            stop: Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?),
            counts: Arc::new(Counts {
                of_disks,
                ..Counts::default()
            }),
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

/// A kind of access that no rule can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unheld {
    /// A call whose files dashpot may not see. It counts for each disk of its type.
    UnknownFile,
    /// An open with `O_SYNC` or `O_DSYNC`, after which each write also syncs. It counts where the disk holds
    /// syncs, but no writes.
    SyncedOpen,
    /// An I/O by `io_submit`, of a type that the disk holds.
    Aio,
    /// An io_uring, whichever files its I/Os reach. It counts for each disk.
    Uring,
    /// A mapping through which the program writes to a file, or makes stores durable without a call.
    Mapping,
    /// A mapping through which the program reads a file, or a file that the program executes. It counts where
    /// the disk holds reads.
    ReadMapping,
    /// An open by a file's handle. It counts where the disk holds opens.
    Handle,
}

impl Unheld {
    /// Every kind, in the order in which reports list them.
    pub const ALL: [Unheld; 7] = [
        Unheld::UnknownFile,
        Unheld::SyncedOpen,
        Unheld::Aio,
        Unheld::Uring,
        Unheld::Mapping,
        Unheld::ReadMapping,
        Unheld::Handle,
    ];

    /// The word for this kind in JSON and in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Unheld::UnknownFile => "unknown_file",
            Unheld::SyncedOpen => "synced_open",
            Unheld::Aio => "io_submit",
            Unheld::Uring => "io_uring",
            Unheld::Mapping => "mapping",
            Unheld::ReadMapping => "read_mapping",
            Unheld::Handle => "handle",
        }
    }

    /// The number of accesses in words, which begin a sentence.
    pub fn counted(self, count: u64) -> String {
        let (one, many) = match self {
            Unheld::UnknownFile => (
                "call was not held, because its file was not known",
                "calls were not held, because their files were not known",
            ),
            Unheld::SyncedOpen => (
                "file was opened with O_SYNC or O_DSYNC, and its writes, which sync, were not held",
                "files were opened with O_SYNC or O_DSYNC, and their writes, which sync, were not held",
            ),
            Unheld::Aio => (
                "I/O by io_submit was not held",
                "I/Os by io_submit were not held",
            ),
            Unheld::Uring => (
                "ring of io_uring was asked for, and a ring's I/Os are not held",
                "rings of io_uring were asked for, and a ring's I/Os are not held",
            ),
            Unheld::Mapping => (
                "mapping was shared and writable, and stores into it were not held",
                "mappings were shared and writable, and stores into them were not held",
            ),
            Unheld::ReadMapping => (
                "file was mapped or executed, and reads of its mapping were not held",
                "files were mapped or executed, and reads of their mappings were not held",
            ),
            Unheld::Handle => (
                "file was opened by its handle, and the open was not held",
                "files were opened by their handles, and the opens were not held",
            ),
        };
        match count {
            1 => format!("1 {one}"),
            count => format!("{count} {many}"),
        }
    }

    /// A way to have such accesses held, or to do without them.
    pub const fn remedy(self) -> &'static str {
        match self {
            Unheld::UnknownFile => {
                "give dashpot CAP_SYS_PTRACE, or a directory with fewer files of several names"
            }
            Unheld::SyncedOpen => "types=sync,write holds these writes",
            Unheld::Aio | Unheld::Uring => {
                "--uring refuse makes most programs use calls that are held"
            }
            Unheld::Mapping | Unheld::ReadMapping => {
                "switch memory-mapped files off in the program, or inject on a device: run --mount"
            }
            Unheld::Handle => "inject on a device: run --mount",
        }
    }
}

/// How far the figures of a path disk can be trusted.
#[derive(Debug)]
pub struct PathCounts {
    /// The accesses that dashpot did not hold.
    pub unheld: UnheldCounts,
    /// How many calls of the disk's programs a signal ended, as in [`Counts::interrupted`].
    pub(crate) interrupted: AtomicU64,
    /// Whether the kernel numbers all calls, so that none of those is missed.
    pub(crate) counts_all: AtomicBool,
}

impl PathCounts {
    /// How many calls of the disk's programs a signal ended, as in [`Counts::interrupted`]. `None` before Linux
    /// 5.19: dashpot misses some there.
    pub fn interrupted(&self) -> Option<u64> {
        let counts_all = self.counts_all.load(Ordering::Relaxed);
        counts_all.then(|| self.interrupted.load(Ordering::Relaxed))
    }
}

impl Default for PathCounts {
    fn default() -> PathCounts {
        PathCounts {
            unheld: UnheldCounts::default(),
            interrupted: AtomicU64::new(0),
            counts_all: AtomicBool::new(true),
        }
    }
}

/// How many accesses of each kind a program made.
#[derive(Debug, Default)]
pub struct UnheldCounts([AtomicU64; Unheld::ALL.len()]);

impl UnheldCounts {
    pub(crate) fn add(&self, unheld: Unheld, more: u64) {
        self.0[unheld as usize].fetch_add(more, Ordering::Relaxed);
    }

    /// The kinds with at least one access, with their counts.
    pub fn counted(&self) -> Vec<(Unheld, u64)> {
        let each = Unheld::ALL.iter().zip(&self.0);
        each.map(|(unheld, count)| (*unheld, count.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Unheld, UnheldCounts};

    #[test]
    fn each_kind_has_a_count_and_a_word_of_its_own() {
        let counts = UnheldCounts::default();
        for (at, unheld) in Unheld::ALL.into_iter().enumerate() {
            counts.add(unheld, at as u64);
        }
        let expected: Vec<_> = (1..Unheld::ALL.len())
            .map(|at| (Unheld::ALL[at], at as u64))
            .collect();
        assert_eq!(counts.counted(), expected);
        let mut words = Unheld::ALL.map(Unheld::word);
        words.sort_unstable();
        assert!(words.is_sorted_by(|a, b| a < b));
    }
}
