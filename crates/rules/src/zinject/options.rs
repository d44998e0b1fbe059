//! The values of zinject's options.

use dashpot_engine::inject::{Damage, LANES_MAX};
use dashpot_engine::{Duration, Op, OpSet, Ratio};

use super::refusal::Refusal;
use crate::{Decimal, parse_probability};

/// The value of `-D`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delay {
    pub(super) latency: Duration,
    pub(super) lanes: u32,
}

/// Parses `MS:LANES`: whole milliseconds, at least one.
pub(super) fn parse_delay(text: &str) -> Result<Delay, Refusal> {
    let invalid = || {
        Refusal::usage(
            1,
            format!(
                "invalid i/o delay value '{text}': give whole milliseconds and lanes, such as 10:1"
            ),
        )
    };
    let (ms, lanes) = text.split_once(':').ok_or_else(invalid)?;
    let ms: u64 = ms.parse().map_err(|_| invalid())?;
    let lanes: u64 = lanes.parse().map_err(|_| invalid())?;
    let nanos = ms
        .checked_mul(1_000_000)
        .filter(|nanos| *nanos > 0)
        .ok_or_else(invalid)?;
    let in_range = u32::try_from(lanes)
        .ok()
        .filter(|n| (1..=LANES_MAX).contains(n));
    let lanes = in_range.ok_or_else(|| {
        Refusal::failure(format!(
            "failed to add handler: {lanes} lanes in '{text}': give 1 to {LANES_MAX}"
        ))
    })?;
    Ok(Delay {
        latency: Duration::from_nanos(nanos),
        lanes,
    })
}

/// The value of `-f`: the ratio as the user typed it, and the ratio that zinject stores, whose denominator is
/// 2^32 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frequency {
    pub(super) typed: Ratio,
    pub(super) stored: Ratio,
}

/// Parses a percentage from 0.0001 to 100.
pub(super) fn parse_frequency(text: &str) -> Result<Frequency, Refusal> {
    let percent = Decimal::parse(text).ok_or_else(|| {
        Refusal::failure(format!(
            "invalid frequency value '{text}': give a percentage, such as 0.5"
        ))
    })?;
    let in_range = || {
        percent.times_floor(10_000).filter(|least| *least > 0)?;
        let typed = parse_probability(&format!("{text}%")).ok()?;
        let stored = percent.times_floor(u64::from(u32::MAX))? / 100;
        Some(Frequency {
            typed,
            stored: Ratio::new(stored, u64::from(u32::MAX))?,
        })
    };
    in_range().ok_or_else(|| {
        Refusal::failure(format!(
            "frequency '{text}' is out of range: give 0.0001 to 100.0"
        ))
    })
}

/// The value of `-T`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IoType {
    Read,
    Write,
    Flush,
    Trim,
    #[default]
    All,
}

impl IoType {
    pub(super) const EVERY: [IoType; 5] = [
        IoType::Read,
        IoType::Write,
        IoType::Flush,
        IoType::Trim,
        IoType::All,
    ];

    /// zinject's word for this type.
    pub fn name(self) -> &'static str {
        match self {
            IoType::Read => "read",
            IoType::Write => "write",
            IoType::Flush => "flush",
            IoType::Trim => "trim",
            IoType::All => "all",
        }
    }

    /// The operations that a device fault of this type affects. ZFS has no operation that writes zeroes.
    pub fn ops(self) -> OpSet {
        match self {
            IoType::Read => OpSet::of(Op::Read),
            IoType::Write => OpSet::of(Op::Write),
            IoType::Flush => OpSet::of(Op::Flush),
            IoType::Trim => OpSet::of(Op::Trim),
            IoType::All => {
                let data = IoType::Read.ops().union(IoType::Write.ops());
                data.union(IoType::Flush.ops()).union(IoType::Trim.ops())
            }
        }
    }

    /// The operations of this type that can be damaged so; `None` for none.
    pub(super) fn damaged_ops(self, damage: Damage) -> Option<OpSet> {
        let ops = Op::OF_BLOCKS.into_iter().map(OpSet::of);
        let ops = ops.filter(|op| self.ops().meets(*op) && damage.ops().meets(*op));
        let ops = ops.fold(OpSet::EMPTY, OpSet::union);
        (ops != OpSet::EMPTY).then_some(ops)
    }

    /// The operations that a delay of this type affects: ZFS delays only reads and writes.
    pub(super) fn delayed_ops(self) -> Option<OpSet> {
        match self {
            IoType::Read | IoType::Write => Some(self.ops()),
            IoType::All => Some(IoType::Read.ops().union(IoType::Write.ops())),
            IoType::Flush | IoType::Trim => None,
        }
    }

    /// The I/O type of a device fault that affects these operations.
    pub(super) fn of_ops(ops: OpSet) -> Option<IoType> {
        let all = (ops == OpSet::ALL).then_some(IoType::All);
        all.or_else(|| IoType::EVERY.into_iter().find(|iotype| iotype.ops() == ops))
    }
}

/// Parses an I/O type, in upper or lower case.
pub(super) fn parse_iotype(text: &str) -> Result<IoType, Refusal> {
    let wanted = text.to_ascii_lowercase();
    if let "null" | "free" | "claim" | "probe" = wanted.as_str() {
        return Err(Refusal::usage(
            1,
            format!(
                "I/O type '{text}' stays inside ZFS, and no block device sees it: give read, write, \
             flush, trim or all"
            ),
        ));
    }
    IoType::EVERY
        .into_iter()
        .find(|iotype| iotype.name() == wanted)
        .ok_or_else(|| {
            Refusal::usage(
                1,
                format!("invalid I/O type '{text}': give read, write, flush, trim or all"),
            )
        })
}

/// An error of `-e` that dashpot can inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeviceError {
    /// The store does its work, and then an error replaces the result.
    Io,
    /// The store does no work.
    IoPrefail,
    /// The I/O succeeds, and nothing is stored.
    Noop,
    /// One bit is wrong.
    Corrupt,
}

/// Parses zinject's name for an error.
pub(super) fn parse_error(text: &str) -> Result<DeviceError, Refusal> {
    let reason = match text {
        "io" => return Ok(DeviceError::Io),
        "io-prefail" => return Ok(DeviceError::IoPrefail),
        "noop" => return Ok(DeviceError::Noop),
        "corrupt" => return Ok(DeviceError::Corrupt),
        "nxio" => "the disk would vanish, and NBD has no word for it",
        "checksum" | "decompress" | "decrypt" => "ZFS finds it above the device",
        "dtl" => "it is about ZFS's log of the writes that a disk missed",
        _ => {
            return Err(Refusal::usage(
                1,
                format!("invalid error type '{text}': give io, io-prefail, noop or corrupt"),
            ));
        }
    };
    Err(Refusal::failure(format!(
        "error '{text}' cannot be injected into a block device: {reason}; give io, io-prefail, noop or corrupt"
    )))
}
