//! What goes into the engine and what comes out of it: two closed enums.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::bytes::Move;
use crate::client::ClientId;
use crate::inject::{GroupId, RuleId, RuleSpec};
use crate::pool::tunable::{Tunable, TunableError};
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Errno, Outcome, PoolId, VolumeId, Zio, ZioId};

/// Everything that can happen to an engine.
#[derive(Debug)]
pub enum Input<'a> {
    /// A zio is complete and is issued. Its id must not be in use.
    Submit(Zio),
    /// The same for a zio of a volume. Its id is of the same space as those of disks.
    SubmitToVolume(Zio<VolumeId>),
    /// The store has finished what [`Action::Start`] asked for.
    Done(ZioId, Outcome),
    /// The reply that [`Action::Complete`] asked for has left: the transport accepted its last
    /// byte. `offered` is when it was first offered to the transport; what comes after is the
    /// client's fault and does not count as lateness.
    Replied {
        /// Whose reply.
        zio: ZioId,
        /// When the transport was first offered the whole reply.
        offered: Instant,
    },
    /// The connection of these zios is gone. Each is answered with [`Action::Drop`], at once or,
    /// if the store is at work on it, when that is done.
    Abort(&'a [ZioId]),
    /// A client of a disk gets a name.
    Join {
        /// The disk.
        disk: DiskId,
        /// The caller's choice; one that is no longer connected may be used again.
        client: ClientId,
        /// What `--client` globs match.
        name: &'a str,
    },
    /// A change of rules or of a disk's state.
    Command(CommandId, Command),
    /// The host kept the driver from running. The driver says so before the first step that meets
    /// what was due in this time. Held zios whose lateness is for the most part of such stops are
    /// counted apart, see [`crate::Holds::stopped`].
    Stopped {
        /// When the driver was to run.
        from: Instant,
        /// When it ran again.
        until: Instant,
    },
    /// Nothing but time has passed.
    Tick,
}

/// Everything that an engine can ask of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Do it on the store now, then say [`Input::Done`]. What a child is, [`crate::Engine::child`]
    /// tells.
    Start(ZioId),
    /// Move bytes in memory now.
    Move(Move),
    /// Reply, then say [`Input::Replied`].
    Complete(ZioId, Outcome),
    /// The engine has let go of a zio that was aborted.
    Drop(ZioId),
    /// A command took effect, or was refused.
    Answer(CommandId, Result<Answer, CommandError>),
}

/// Names a command, so that its answer finds who asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandId(pub u64);

/// A change of rules or of a disk's state.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Arms rules on a disk, all or none.
    Inject {
        /// The disk.
        disk: DiskId,
        /// The group they belong to; one that exists is joined.
        group: GroupId,
        /// The rules in the order of their registration, with ids larger than any before.
        rules: Vec<(RuleId, RuleSpec)>,
    },
    /// Replaces what a rule says. Its counters, and the bookings of lanes that remain, are kept;
    /// its limit counts from one again.
    Update(RuleId, RuleSpec),
    /// Removes rules.
    Clear {
        /// Which.
        target: Target,
        /// Whether the zios that they hold complete now; otherwise they are left alone. Of a whole
        /// disk, those that rules which are gone have left held are released as well.
        release: bool,
    },
    /// Stops new zios of a disk before lane choice. Answered when nothing is in flight.
    Suspend {
        /// The disk.
        disk: DiskId,
        /// Resume by itself after this time.
        lasts: Option<Duration>,
        /// Answer at once, whatever is in flight.
        now: bool,
    },
    /// Issues what was suspended, in the order of arrival.
    Resume(DiskId),
    /// Sets a tunable of a pool; it counts from the next decision on.
    Tune {
        /// The pool.
        pool: PoolId,
        /// Which.
        tunable: Tunable,
        /// In the tunable's unit.
        value: u64,
    },
    /// Fails every zio that is suspended or held: the daemon is going away.
    FailHeld(Errno),
}

/// Which rules a command is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// One rule.
    Rule(RuleId),
    /// All rules of a disk.
    Disk(DiskId),
    /// All rules.
    All,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done.
    Done,
    /// These rules were removed, in the order of their ids.
    Cleared(Vec<RuleId>),
    /// The disk is suspended, and some zios may still be in flight.
    Suspended {
        /// Zios in flight.
        in_flight: u32,
    },
    /// The disk is resumed, and the zios that waited are issued.
    Resumed {
        /// Zios that were issued.
        waiting: u32,
    },
}

/// Why a command was refused; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// There is no such disk.
    UnknownDisk(DiskId),
    /// There is no such pool.
    UnknownPool(PoolId),
    /// There is no such rule.
    UnknownRule(RuleId),
    /// A value that the tunable cannot have.
    Tunable(TunableError),
    /// The disk was resumed while I/O from before the suspension was still in flight.
    Resumed,
    /// A rule that the engine cannot carry out.
    InvalidRule(String),
    /// The disk has as many rules as it can have.
    TooManyRules {
        /// How many it can have.
        limit: usize,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommandError::UnknownDisk(disk) => write!(f, "no disk {}", disk.0),
            CommandError::UnknownPool(pool) => write!(f, "no pool {}", pool.0),
            CommandError::Tunable(error) => write!(f, "{error}"),
            CommandError::UnknownRule(rule) => write!(f, "no rule {}", rule.0),
            CommandError::Resumed => f.write_str(
                "the disk was resumed while I/O that had begun before was still in flight",
            ),
            CommandError::InvalidRule(why) => f.write_str(why),
            CommandError::TooManyRules { limit } => {
                write!(f, "the disk has {limit} rules already; clear some first")
            }
        }
    }
}
