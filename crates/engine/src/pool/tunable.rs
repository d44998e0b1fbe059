//! The tunables of a pool: ZFS's names, defaults and units, in one table.
//!
//! The lab file, the help, the API and the page all use this table. Names that begin with `zfs_` are ZFS's,
//! including those of the throttle before 2013. Other tunables choose between the behaviours of different ZFS
//! versions, or between behaviours that a lab may want to compare. Bounds are narrower than ZFS's where a
//! value that ZFS accepts would stop the pool or overflow.

use core::fmt;

/// The unit of a tunable's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    /// Hundredths of an amount that the help names.
    Percent,
    Nanoseconds,
    Milliseconds,
    Seconds,
    /// A plain number.
    Count,
    /// The index of a word in this list.
    Choice(&'static [&'static str]),
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct TunableInfo {
    /// The tunable's name, which is ZFS's if ZFS has the tunable.
    pub name: &'static str,
    /// The unit of the tunable's value.
    pub unit: Unit,
    /// The smallest value that the tunable can have.
    pub min: u64,
    /// The largest value that the tunable can have.
    pub max: u64,
    /// The tunable's effect, in one sentence.
    pub help: &'static str,
    default: fn(ram: u64) -> u64,
}

impl TunableInfo {
    /// The default of ZFS on a machine with `ram` bytes of memory.
    pub fn default(&self, ram: u64) -> u64 {
        (self.default)(ram).clamp(self.min, self.max)
    }
}

/// Defines the enum and the table from the same rows.
macro_rules! tunables {
    ($($variant:ident $name:literal $unit:expr, $min:expr, $max:expr, $default:expr, $help:literal;)*) => {
        /// A tunable of a pool.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Tunable {
            $(#[doc = $help] $variant,)*
        }

        impl Tunable {
            /// Every tunable, in the order of the table.
            pub const ALL: &'static [Tunable] = &[$(Tunable::$variant,)*];
        }

        static TABLE: [TunableInfo; Tunable::ALL.len()] = [$(TunableInfo {
            name: $name,
            unit: $unit,
            min: $min,
            max: $max,
            help: $help,
            default: $default,
        },)*];
    };
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const PIB: u64 = 1 << 50;

tunables! {
    DirtyDataMax "zfs_dirty_data_max" Unit::Bytes, 4 * KIB, PIB, dirty_data_max,
        "Dirty data at which writes stop; percentages of dirty data refer to this amount.";
    DirtyDataSyncPercent "zfs_dirty_data_sync_percent" Unit::Percent, 1, 100, |_| 20,
        "Dirty data of one txg, in percent of zfs_dirty_data_max, above which it is synced at once.";
    DelayMinDirtyPercent "zfs_delay_min_dirty_percent" Unit::Percent, 0, 100, |_| 60,
        "Dirty data, in percent of zfs_dirty_data_max, above which writes are delayed.";
    DelayScale "zfs_delay_scale" Unit::Nanoseconds, 1, 1_000_000_000, |_| 500_000,
        "The delay of a write halfway between where delays begin and zfs_dirty_data_max.";
    TxgTimeout "zfs_txg_timeout" Unit::Seconds, 1, 3_600, |_| 5,
        "The longest time from the beginning of one sync to the beginning of the next.";
    AsyncWriteActiveMinDirtyPercent "zfs_vdev_async_write_active_min_dirty_percent" Unit::Percent, 0, 100, |_| 30,
        "Dirty data, in percent of zfs_dirty_data_max, below which disks get the fewest async writes.";
    AsyncWriteActiveMaxDirtyPercent "zfs_vdev_async_write_active_max_dirty_percent" Unit::Percent, 0, 100, |_| 60,
        "Dirty data, in percent of zfs_dirty_data_max, above which disks get the most async writes.";
    MaxActive "zfs_vdev_max_active" Unit::Count, 1, MOST_ACTIVE, |_| 1_000,
        "The most zios at one disk, of all classes.";
    SyncReadMinActive "zfs_vdev_sync_read_min_active" Unit::Count, 1, MOST_ACTIVE, |_| 10,
        "Sync reads that a disk gets before other classes get more than their minimum.";
    SyncReadMaxActive "zfs_vdev_sync_read_max_active" Unit::Count, 1, MOST_ACTIVE, |_| 10,
        "The most sync reads at one disk.";
    SyncWriteMinActive "zfs_vdev_sync_write_min_active" Unit::Count, 1, MOST_ACTIVE, |_| 10,
        "Sync writes that a disk gets before other classes get more than their minimum.";
    SyncWriteMaxActive "zfs_vdev_sync_write_max_active" Unit::Count, 1, MOST_ACTIVE, |_| 10,
        "The most sync writes at one disk.";
    AsyncReadMinActive "zfs_vdev_async_read_min_active" Unit::Count, 1, MOST_ACTIVE, |_| 1,
        "Async reads that a disk gets before other classes get more than their minimum; volumes make none.";
    AsyncReadMaxActive "zfs_vdev_async_read_max_active" Unit::Count, 1, MOST_ACTIVE, |_| 3,
        "The most async reads at one disk; volumes make none.";
    AsyncWriteMinActive "zfs_vdev_async_write_min_active" Unit::Count, 1, MOST_ACTIVE, |_| 2,
        "Async writes that a disk gets before other classes get more than their minimum, and the most while little data is dirty.";
    AsyncWriteMaxActive "zfs_vdev_async_write_max_active" Unit::Count, 1, MOST_ACTIVE, |_| 10,
        "The most async writes at one disk; it gets that many while much data is dirty.";
    QueueDepthPct "zfs_vdev_queue_depth_pct" Unit::Percent, 1, 100_000, |_| 1_000,
        "The dynamic layout gives a member no new blocks while it has more I/Os queued than this share of `zfs_vdev_async_write_max_active`.";
    TrimMinActive "zfs_vdev_trim_min_active" Unit::Count, 1, MOST_ACTIVE, |_| 1,
        "Trims that a disk gets before other classes get more than their minimum.";
    TrimMaxActive "zfs_vdev_trim_max_active" Unit::Count, 1, MOST_ACTIVE, |_| 2,
        "The most trims at one disk.";
    Aggregation "aggregation" Unit::Choice(&["off", "on"]), 0, 1, |_| 1,
        "Whether adjacent zios in the queue of a disk are joined.";
    AggregationLimit "zfs_vdev_aggregation_limit" Unit::Bytes, 0, 16 * MIB, |_| MIB,
        "The most bytes that are joined into one zio, on disks with a head that moves.";
    AggregationLimitNonRotating "zfs_vdev_aggregation_limit_non_rotating" Unit::Bytes, 0, 16 * MIB, |_| 128 * KIB,
        "The most bytes that are joined into one zio, on disks without a head that moves.";
    ReadGapLimit "zfs_vdev_read_gap_limit" Unit::Bytes, 0, 16 * MIB, |_| 32 * KIB,
        "The largest gap between two reads that is read, too, so that the reads can be joined.";
    WriteLimitShift "zfs_write_limit_shift" Unit::Count, 0, 63, |_| 3,
        "Legacy throttle: one txg takes at most the memory divided by two to the power of this number.";
    WriteLimitMin "zfs_write_limit_min" Unit::Bytes, 4 * KIB, PIB, |_| 32 * MIB,
        "Legacy throttle: one txg takes at least this; also its limit before anything was measured.";
    WriteLimitOverride "zfs_write_limit_override" Unit::Bytes, 0, PIB, |_| 0,
        "Legacy throttle: the limit of every txg, in place of the measured one; 0 is off.";
    WriteLimitInflation "zfs_write_limit_inflation" Unit::Count, 1, 24, |_| 1,
        "Legacy throttle: every byte counts as this many bytes, the worst case with copies and parity (ZFS: 24).";
    TxgSynctimeMs "zfs_txg_synctime_ms" Unit::Milliseconds, 1, 600_000, |_| 5_000,
        "Legacy throttle: how long one sync should take (5000 until 2010, 1000 after).";
    ThrottleDelay "zfs_throttle_delay" Unit::Nanoseconds, 1, 10_000_000_000, |_| 10_000_000,
        "Legacy throttle: how long a write waits when its txg is 7/8 full.";
    DirtyRetire "dirty_retire" Unit::Choice(&["logical", "physical"]), 0, 1, |_| 0,
        "Whether a block stops being dirty when all its copies are written (2.2 and later), or part by part, with each copy (2013 to 2.1).";
    TxgOverhead "txg_overhead" Unit::Choice(&["off", "on"]), 0, 1, |_| 1,
        "Whether a txg of `openzfs` has indirect blocks and dnodes, later passes and uberblocks, which are dirty data and writes beside the data.";
    MirrorRead "mirror_read" Unit::Choice(&["balanced", "primary"]), 0, 1, |_| 0,
        "Whether a mirror is read from the side with fewer zios, or from the first.";
    FailMode "failmode" Unit::Choice(&["wait", "continue"]), 0, 1, |_| 0,
        "Whether writes wait or fail while a pool cannot write what it has acknowledged.";
}

/// The highest value that a limit on the number of zios at a disk can have. No disk ever gets this many zios.
/// The product of this value and the largest amount of dirty data fits into 64 bits.
const MOST_ACTIVE: u64 = 10_000;

/// The default of [`Tunable::DirtyDataMax`]. As in ZFS, a tenth of the memory, but at most 4 GiB.
fn dirty_data_max(ram: u64) -> u64 {
    let cap = (4 * GIB).min(ram / 4);
    (ram / 10).min(cap)
}

/// Pairs of tunables. In each pair, the value of the first must not exceed the value of the second.
const ORDERED: [(Tunable, Tunable); 6] = [
    (
        Tunable::AsyncWriteActiveMinDirtyPercent,
        Tunable::AsyncWriteActiveMaxDirtyPercent,
    ),
    (Tunable::SyncReadMinActive, Tunable::SyncReadMaxActive),
    (Tunable::SyncWriteMinActive, Tunable::SyncWriteMaxActive),
    (Tunable::AsyncReadMinActive, Tunable::AsyncReadMaxActive),
    (Tunable::AsyncWriteMinActive, Tunable::AsyncWriteMaxActive),
    (Tunable::TrimMinActive, Tunable::TrimMaxActive),
];

impl Tunable {
    /// The tunable's row in the table.
    pub fn info(self) -> &'static TunableInfo {
        &TABLE[self as usize]
    }

    pub fn from_name(name: &str) -> Option<Tunable> {
        Tunable::ALL
            .iter()
            .copied()
            .find(|tunable| tunable.info().name == name)
    }
}

/// The values of a pool's tunables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tunables {
    ram: u64,
    values: [u64; Tunable::ALL.len()],
}

impl Tunables {
    /// ZFS's defaults on a machine with `ram` bytes of memory.
    pub fn new(ram: u64) -> Tunables {
        Tunables {
            ram,
            values: core::array::from_fn(|at| TABLE[at].default(ram)),
        }
    }

    /// The size of the modelled machine's memory, in bytes.
    pub fn ram(&self) -> u64 {
        self.ram
    }

    /// The value in force.
    pub fn get(&self, tunable: Tunable) -> u64 {
        self.values[tunable as usize]
    }

    /// Every tunable with the value in force, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (Tunable, u64)> {
        Tunable::ALL.iter().copied().zip(self.values)
    }

    /// Sets one tunable, or returns why it cannot have this value.
    pub fn set(&mut self, tunable: Tunable, value: u64) -> Result<(), TunableError> {
        self.set_all([(tunable, value)])
    }

    /// Sets all of these tunables or none of them. Bounds between two tunables are checked after all are set.
    pub fn set_all(
        &mut self,
        changes: impl IntoIterator<Item = (Tunable, u64)>,
    ) -> Result<(), TunableError> {
        let mut changed = self.clone();
        for (tunable, value) in changes {
            let info = tunable.info();
            if !(info.min..=info.max).contains(&value) {
                return Err(TunableError::OutOfBounds { tunable, value });
            }
            changed.values[tunable as usize] = value;
        }
        changed.check_pairs()?;
        *self = changed;
        Ok(())
    }

    fn check_pairs(&self) -> Result<(), TunableError> {
        for (low, high) in ORDERED {
            if self.get(low) > self.get(high) {
                return Err(TunableError::Crossed {
                    low: (low, self.get(low)),
                    high: (high, self.get(high)),
                });
            }
        }
        let scale = self.get(Tunable::DelayScale);
        let dirty_data_max = self.get(Tunable::DirtyDataMax);
        match scale.checked_mul(dirty_data_max) {
            Some(_) => Ok(()),
            None => Err(TunableError::Overflows {
                scale,
                dirty_data_max,
            }),
        }
    }

    /// Whether each copy that has been written retires its share of a block's dirty bytes.
    pub(crate) fn retires_physically(&self) -> bool {
        self.get(Tunable::DirtyRetire) == 1
    }

    /// Whether txgs have overhead, if the throttle is OpenZFS's.
    pub(crate) fn has_overhead(&self) -> bool {
        self.get(Tunable::TxgOverhead) == 1
    }

    /// Whether a mirror is read from its first side only.
    pub(crate) fn reads_primary(&self) -> bool {
        self.get(Tunable::MirrorRead) == 1
    }

    /// Whether adjacent zios are joined.
    pub(crate) fn aggregates(&self) -> bool {
        self.get(Tunable::Aggregation) == 1
    }

    /// Whether writes fail, rather than wait, while the pool cannot write.
    pub(crate) fn fails_on_error(&self) -> bool {
        self.get(Tunable::FailMode) == 1
    }
}

/// The reason that a tunable was not set to a value. The call changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunableError {
    /// The value is outside of the tunable's bounds.
    OutOfBounds { tunable: Tunable, value: u64 },
    /// A minimum would be above its maximum.
    Crossed {
        /// The minimum, and its value.
        low: (Tunable, u64),
        /// The maximum, and its value.
        high: (Tunable, u64),
    },
    /// The product of these two values would not fit into 64 bits.
    Overflows {
        /// The value of [`Tunable::DelayScale`].
        scale: u64,
        /// The value of [`Tunable::DirtyDataMax`].
        dirty_data_max: u64,
    },
}

impl fmt::Display for TunableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TunableError::OutOfBounds { tunable, value } => {
                let info = tunable.info();
                write!(f, "{} cannot be {value}: ", info.name)?;
                match info.unit {
                    Unit::Choice(words) => write!(f, "it is one of {}", Words(words)),
                    unit => write!(f, "it is from {} to {}{unit}", info.min, info.max),
                }
            }
            TunableError::Crossed { low, high } => write!(
                f,
                "{} would be {}, above {}, which would be {}; set both at once",
                low.0.info().name,
                low.1,
                high.0.info().name,
                high.1
            ),
            TunableError::Overflows {
                scale,
                dirty_data_max,
            } => write!(
                f,
                "zfs_delay_scale ({scale}) times zfs_dirty_data_max ({dirty_data_max}) must stay below 2^64; lower one of them"
            ),
        }
    }
}

impl core::error::Error for TunableError {}

impl fmt::Display for Unit {
    /// Writes the unit after a number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unit::Bytes => " bytes",
            Unit::Percent => " %",
            Unit::Nanoseconds => " ns",
            Unit::Milliseconds => " ms",
            Unit::Seconds => " s",
            Unit::Count | Unit::Choice(_) => "",
        })
    }
}

struct Words(&'static [&'static str]);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, word) in self.0.iter().enumerate() {
            write!(f, "{}{word}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
