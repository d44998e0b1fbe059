//! The inputs and the actions of the engine: two closed enums.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::bytes::Move;
use crate::client::ClientId;
use crate::event::Device;
use crate::inject::{DataFault, GroupId, RuleId, RuleSpec};
use crate::pool::tunable::{Tunable, TunableError};
use crate::time::{Duration, Instant};
use crate::zio::{DiskId, Errno, Outcome, PoolId, VolumeId, Zio, ZioId};

/// Everything that can happen to an engine.
#[derive(Debug)]
pub enum Input<'a> {
    /// Issue a zio to a disk. The driver has received the zio completely. The zio's id must not be in use.
    Submit(Zio),
    /// Issue a zio to a disk, as of the moment of its arrival. The driver has had the whole zio since then, and
    /// has only worked out what the zio is. So the time since its arrival belongs to the time for which rules
    /// hold the zio, and what exceeds that time is lateness.
    SubmitSinceArrival(Zio),
    /// Issue a zio to a volume. The driver has received the zio completely. Zios of volumes and zios of disks
    /// share one id space.
    SubmitToVolume(Zio<VolumeId>),
    /// The store has finished the work of [`Action::Start`].
    Done(ZioId, Outcome),
    /// The reply of [`Action::Complete`] has left, which means that the transport has accepted its last byte.
    /// `offered` is the moment at which the driver first offered the whole reply to the transport. The client
    /// causes any delay after `offered`, so this delay does not count as lateness.
    Replied {
        /// The zio of the reply.
        zio: ZioId,
        /// The moment at which the driver first offered the whole reply to the transport.
        offered: Instant,
    },
    /// The connection of these zios is gone. The engine answers each zio with [`Action::Drop`]. If the store
    /// works on the zio, the answer comes when the store has finished; otherwise, it comes at once.
    Abort(&'a [ZioId]),
    /// A client of a disk or a volume gets a name. A rule matches the clients of its disk by their names. The
    /// clients of a pool's disk are the pool and its volumes, so a rule never meets the client of a volume.
    Join {
        /// The client's device.
        device: Device,
        /// The id, chosen by the caller: a new id, or the id of a client that has left.
        client: ClientId,
        /// The name, for `--client` globs to match.
        name: &'a str,
    },
    /// A change of rules or of a disk's state.
    Command(CommandId, Command),
    /// The host kept the driver from running. The driver reports the stop before the first step that handles
    /// deadlines that fell due during the stop. If a held zio is late mostly because of stops, it is also
    /// counted separately; see [`crate::Holds::stopped`].
    Stopped {
        /// The moment at which the driver should have run.
        from: Instant,
        /// The moment at which the driver ran again.
        until: Instant,
    },
    /// The driver has made the records of a pool's mirrors durable, as [`Action::Record`] asked, or has
    /// failed to.
    Recorded(PoolId, Outcome),
    /// Only time has passed.
    Tick,
}

/// Everything that an engine can ask of its driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Do the zio's work on the store now, then report [`Input::Done`]. If the zio is a child,
    /// [`crate::Engine::child`] returns it.
    Start(ZioId),
    /// Do the zio's work with this damage, then report [`Input::Done`].
    StartDamaged(ZioId, DataFault),
    /// Move bytes in memory now.
    Move(Move),
    /// Send the reply, then report [`Input::Replied`].
    Complete(ZioId, Outcome),
    /// The engine has forgotten a zio that was aborted.
    Drop(ZioId),
    /// A child has ended, and its pool has got this outcome. A pool that has lost its power gets none, so its
    /// children end with [`Errno::Shutdown`]. Only for drivers that [watch children](crate::Engine::watch_children).
    Ended {
        /// The child.
        zio: ZioId,
        /// The child's disk.
        disk: DiskId,
        /// The result that the pool has got.
        outcome: Outcome,
        /// The number of this result, see [`crate::Engine::tell`].
        told: u64,
    },
    /// Make the current [`crate::Engine::mirror_records`] of this pool durable, then report
    /// [`Input::Recorded`]. The engine asks for records only after [`crate::Engine::record_mirrors`].
    Record(PoolId),
    /// A command took effect, or was refused.
    Answer(CommandId, Result<Answer, CommandError>),
}

/// The id of a command. The answer to the command carries the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommandId(pub u64);

/// A change of rules or of a disk's state.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Arms rules on a disk: either all of them or none.
    Inject {
        disk: DiskId,
        /// The group of the rules. The rules join the group if the group exists.
        group: GroupId,
        /// The rules, in the order of their registration. Their ids are larger than all earlier ids.
        rules: Vec<(RuleId, RuleSpec)>,
    },
    /// Replaces the specification of a rule. The rule keeps its counters. If the new specification has fewer
    /// lanes, only the lanes that remain keep their bookings. The count of zios towards the rule's limit
    /// restarts from zero.
    Update(RuleId, Box<RuleSpec>),
    /// Removes rules.
    Clear {
        /// The rules to remove.
        target: Target,
        /// The zios that the command completes, of those that the rules hold.
        release: Release,
    },
    /// Makes new zios of a disk wait before they choose a lane. The engine answers when all zios that the
    /// disk has already issued have ended.
    Suspend {
        disk: DiskId,
        /// Resume automatically after this time.
        lasts: Option<Duration>,
        /// Answer at once, even if zios are in flight.
        now: bool,
    },
    /// Issues the suspended zios, in the order of arrival.
    Resume(DiskId),
    /// Sets tunables of a pool: either all of them or none. The new values take effect with the pool's next
    /// decision.
    Tune {
        pool: PoolId,
        /// The tunables and their new values, each in the tunable's unit.
        changes: Vec<(Tunable, u64)>,
    },
    /// Makes a pool lose everything that it has only in memory, as when its host loses power. The driver
    /// first aborts the zios of the pool's volumes, and waits until no store works for the pool.
    Crash(PoolId),
    /// Makes the sides of a pool's mirrors identical again. The driver gives this command when the daemon
    /// starts, and when the power is on again after a power cut. Until a region whose sides may differ is
    /// repaired, the pool reads only one of its sides.
    Repair(PoolId),
    /// Makes the pools write all dirty data to their disks, without waiting for a reason to sync. From then
    /// on, the pools write new dirty data at once, too.
    Drain,
    /// Fails all suspended and held zios of clients, because the daemon ends. The disks of pools lose their
    /// rules and resume, so that acknowledged data reaches the disks.
    FailHeld(Errno),
}

/// The rules that a command applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Rule(RuleId),
    /// All rules of a disk.
    Disk(DiskId),
    /// All rules.
    All,
}

/// The zios that the removal of rules completes, of those that the rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// None: a zio keeps its target, and a zio that hangs goes on hanging.
    Nothing,
    /// The zios that the rules hang. Zios with a delay keep their targets. So a rule ends with what armed it.
    Hung,
    /// All. For a whole disk, also the zios that are still held by rules that were removed earlier.
    All,
}

/// The zios that removed rules still hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// How many zios have not yet reached the target that the rules gave them.
    pub held: u64,
    /// How many of these never end by themselves.
    pub hung: u64,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The command is done.
    Done,
    /// The command removed these rules, listed in the order of their ids, and left these zios held.
    Cleared(Vec<RuleId>, Left),
    /// The disk is suspended, and some zios may still be in flight.
    Suspended {
        /// The number of zios in flight.
        in_flight: u32,
    },
    /// The pool has lost these txgs, each with this many dirty bytes.
    Crashed(Vec<(u64, u64)>),
    /// The disk is resumed, and the waiting zios are issued.
    Resumed {
        /// The number of zios that were waiting and have been issued.
        waiting: u32,
    },
}

/// The reason that the engine refused a command. The command changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// There is no such disk.
    UnknownDisk(DiskId),
    /// There is no such pool.
    UnknownPool(PoolId),
    /// There is no such rule.
    UnknownRule(RuleId),
    /// The tunable cannot have this value.
    Tunable(TunableError),
    /// A command to suspend a disk was not completed: the disk was resumed while zios from before the
    /// suspension were still in flight.
    Resumed,
    /// A rule that the engine cannot carry out.
    InvalidRule(String),
    /// The disk has the maximum number of rules.
    TooManyRules {
        /// The maximum number of rules on one disk.
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
                "the disk was resumed while I/O from before the suspension was still in flight",
            ),
            CommandError::InvalidRule(why) => f.write_str(why),
            CommandError::TooManyRules { limit } => {
                write!(f, "the disk has {limit} rules already; clear some first")
            }
        }
    }
}
