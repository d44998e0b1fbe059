//! Whether a request may be served, and what it asks for.
//!
//! Source: NetworkBlockDevice/nbd, doc/proto.md, "RequestHeader types", "Error values" and "Size
//! constraints". Where the protocol leaves the answer open: a request of no bytes is EINVAL, as
//! with nbdkit; trim, zeroes, cache and block status may be longer than a payload may.

use dashpot_engine::Errno;

use super::handshake::Features;
use super::wire::{PAYLOAD_MAX, RequestHeader, command, flag};
use crate::export::ExportInfo;

/// The largest payload of a refused write that is read and thrown away, in bytes. A client that
/// announces more is dropped.
pub const DRAIN_MAX: u32 = 2 * PAYLOAD_MAX;

/// What a valid request asks for. Its range, where it has one, is not empty, is aligned and
/// lies within the export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads bytes.
    Read {
        /// Whether the data must come in one chunk.
        df: bool,
    },
    /// Writes the bytes that follow the request.
    Write {
        /// Whether to be durable before the reply.
        fua: bool,
    },
    /// Makes durable what was acknowledged before.
    Flush,
    /// Gives a range back.
    Trim {
        /// Whether to be durable before the reply.
        fua: bool,
    },
    /// Writes zeroes.
    WriteZeroes {
        /// Whether to be durable before the reply.
        fua: bool,
        /// Whether the range must stay allocated.
        no_hole: bool,
    },
    /// Asks for a range to be read ahead.
    Cache,
    /// Asks which parts of a range are allocated.
    BlockStatus {
        /// Whether one extent, within the range, is all that may be told.
        req_one: bool,
    },
    /// Asks for the end: what is in flight is finished, nothing is replied.
    Disconnect,
}

/// Why a request cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It gets an error, and the connection goes on.
    Reply {
        /// The error.
        errno: Errno,
        /// The reason, for people.
        reason: &'static str,
        /// Bytes that follow the request and must be thrown away before the next one.
        payload: u32,
    },
    /// It announces a payload above [`DRAIN_MAX`]: the connection is to be dropped.
    Drop,
}

/// Checks a request against its export and what was negotiated.
pub fn check(
    request: &RequestHeader,
    export: &ExportInfo,
    features: Features,
) -> Result<Operation, Refused> {
    let payload = match request.command {
        command::WRITE => request.length,
        _ => 0,
    };
    if payload > DRAIN_MAX {
        return Err(Refused::Drop);
    }
    accept(request, export, features).map_err(|(errno, reason)| Refused::Reply {
        errno,
        reason,
        payload,
    })
}

type Refusal = (Errno, &'static str);

fn accept(
    request: &RequestHeader,
    export: &ExportInfo,
    features: Features,
) -> Result<Operation, Refusal> {
    let operation = operation(request, features)?;
    match operation {
        Operation::Disconnect => {}
        Operation::Flush => check_no_range(request)?,
        Operation::Read { .. } => {
            check_payload(request)?;
            check_range(request, export, Errno::Inval)?;
        }
        Operation::Write { .. } => {
            check_writable(export)?;
            check_payload(request)?;
            check_range(request, export, Errno::NoSpc)?;
        }
        Operation::WriteZeroes { .. } => {
            check_writable(export)?;
            check_range(request, export, Errno::NoSpc)?;
        }
        Operation::Trim { .. } => {
            check_writable(export)?;
            check_range(request, export, Errno::Inval)?;
        }
        Operation::Cache | Operation::BlockStatus { .. } => {
            check_range(request, export, Errno::Inval)?;
        }
    }
    Ok(operation)
}

/// The operation that a command and its flags stand for. FUA is valid on all commands, because
/// the protocol says that clients are known to set it anywhere.
fn operation(request: &RequestHeader, features: Features) -> Result<Operation, Refusal> {
    let has = |bit| request.flags & bit != 0;
    let fua = has(flag::FUA);
    let df = if features.structured { flag::DF } else { 0 };
    let (operation, flags) = match request.command {
        command::READ => (Operation::Read { df: has(flag::DF) }, df),
        command::WRITE => (Operation::Write { fua }, 0),
        command::FLUSH => (Operation::Flush, 0),
        command::TRIM => (Operation::Trim { fua }, 0),
        command::CACHE => (Operation::Cache, 0),
        command::WRITE_ZEROES => {
            let no_hole = has(flag::NO_HOLE);
            (Operation::WriteZeroes { fua, no_hole }, flag::NO_HOLE)
        }
        command::BLOCK_STATUS if features.base_allocation => {
            let req_one = has(flag::REQ_ONE);
            (Operation::BlockStatus { req_one }, flag::REQ_ONE)
        }
        command::BLOCK_STATUS => return invalid("no metadata context was negotiated"),
        command::DISC => return Ok(Operation::Disconnect),
        _ => return invalid("unknown command"),
    };
    if request.flags & !(flags | flag::FUA) != 0 {
        return invalid("a command flag that this command does not have");
    }
    Ok(operation)
}

fn check_writable(export: &ExportInfo) -> Result<(), Refusal> {
    if export.read_only {
        return Err((Errno::Perm, "the export is read-only"));
    }
    Ok(())
}

fn check_payload(request: &RequestHeader) -> Result<(), Refusal> {
    if request.length > PAYLOAD_MAX {
        return invalid("longer than 32 MiB");
    }
    Ok(())
}

fn check_no_range(request: &RequestHeader) -> Result<(), Refusal> {
    if request.offset != 0 || request.length != 0 {
        return invalid("a flush has no offset and no length");
    }
    Ok(())
}

/// `beyond` is the error for a range that ends after the export does.
fn check_range(request: &RequestHeader, export: &ExportInfo, beyond: Errno) -> Result<(), Refusal> {
    if request.length == 0 {
        return invalid("a range of no bytes");
    }
    let mask = u64::from(export.block) - 1;
    if (request.offset | u64::from(request.length)) & mask != 0 {
        return invalid("not aligned to the minimum block size");
    }
    match request.offset.checked_add(u64::from(request.length)) {
        Some(end) if end <= export.size => Ok(()),
        _ => Err((beyond, "beyond the end of the export")),
    }
}

fn invalid<T>(reason: &'static str) -> Result<T, Refusal> {
    Err((Errno::Inval, reason))
}

#[cfg(test)]
mod tests;
