//! Checks whether a request is valid, and finds the operation that it asks for.
//!
//! Source: The rules are from NetworkBlockDevice/nbd, doc/proto.md, "Request types", "Error values" and "Size
//! constraints". The protocol leaves two answers open. This module answers a request of no bytes with EINVAL,
//! as nbdkit does. And it lets requests without a payload (trim, zeroes, cache, block status) cover more
//! bytes than the largest payload.

use dashpot_engine::Errno;

use super::handshake::Features;
use super::wire::{PAYLOAD_MAX, RequestHeader, command, flag};
use crate::export::ExportInfo;
use crate::frontend::boundary::Operation;

/// If a refused write has a payload of at most this many bytes, the server reads and discards it. The server
/// disconnects a client that announces a longer payload.
pub const DRAIN_MAX: u32 = 2 * PAYLOAD_MAX;

/// The operation of a valid request. Its range, if it has one, is not empty, is aligned and lies within the
/// export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// An operation that becomes a zio. For reads, the flag DF makes no difference, because every reply has
    /// its data in one chunk anyway.
    Io(Operation),
    /// Asks which parts of a range are allocated.
    BlockStatus {
        /// Whether the client wants a single extent, which must not reach beyond the range.
        req_one: bool,
    },
    /// The client wants to disconnect. The shard finishes the zios in flight, and sends no reply to this
    /// request.
    Disconnect,
}

/// The reason that a request cannot be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The reply is an error, and the connection continues.
    Reply {
        /// The error.
        errno: Errno,
        /// The reason, as text for people.
        reason: &'static str,
        /// The number of payload bytes that follow the request, which the server must discard.
        payload: u32,
    },
    /// The request announces a payload above [`DRAIN_MAX`], so the server must drop the connection.
    Drop,
}

/// Checks a request against its export and the negotiated features.
pub fn check(
    request: &RequestHeader,
    export: &ExportInfo,
    features: Features,
) -> Result<Accepted, Refused> {
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
) -> Result<Accepted, Refusal> {
    let accepted = command(request, features)?;
    match accepted {
        Accepted::Disconnect => {}
        Accepted::Io(operation) => check_io(request, export, operation)?,
        Accepted::BlockStatus { .. } => check_range(request, export, Errno::Inval)?,
    }
    Ok(accepted)
}

fn check_io(
    request: &RequestHeader,
    export: &ExportInfo,
    operation: Operation,
) -> Result<(), Refusal> {
    match operation {
        Operation::Flush => check_no_range(request),
        Operation::Read => {
            check_payload(request)?;
            check_range(request, export, Errno::Inval)
        }
        Operation::Write { .. } => {
            check_writable(export)?;
            check_payload(request)?;
            check_range(request, export, Errno::NoSpc)
        }
        Operation::Zero { .. } => {
            check_writable(export)?;
            check_range(request, export, Errno::NoSpc)
        }
        Operation::Trim { .. } => {
            check_writable(export)?;
            check_range(request, export, Errno::Inval)
        }
        // No NBD request is a `Call`.
        Operation::Cache | Operation::Call(..) => check_range(request, export, Errno::Inval),
    }
}

/// The operation that a command and its flags ask for. FUA is valid on all commands, because the protocol
/// warns that some clients set it on every command.
fn command(request: &RequestHeader, features: Features) -> Result<Accepted, Refusal> {
    let has = |bit| request.flags & bit != 0;
    let fua = has(flag::FUA);
    let df = if features.structured { flag::DF } else { 0 };
    let (operation, flags) = match request.command {
        command::READ => (Operation::Read, df),
        command::WRITE => (Operation::Write { fua }, 0),
        command::FLUSH => (Operation::Flush, 0),
        command::TRIM => (Operation::Trim { fua }, 0),
        command::CACHE => (Operation::Cache, 0),
        command::WRITE_ZEROES => {
            let no_hole = has(flag::NO_HOLE);
            (Operation::Zero { fua, no_hole }, flag::NO_HOLE)
        }
        command::BLOCK_STATUS if features.base_allocation => {
            let req_one = has(flag::REQ_ONE);
            check_flags(request, flag::REQ_ONE)?;
            return Ok(Accepted::BlockStatus { req_one });
        }
        command::BLOCK_STATUS => return invalid("no metadata context was negotiated"),
        command::DISC => return Ok(Accepted::Disconnect),
        _ => return invalid("unknown command"),
    };
    check_flags(request, flags)?;
    Ok(Accepted::Io(operation))
}

/// Refuses flags that the command does not have.
fn check_flags(request: &RequestHeader, flags: u16) -> Result<(), Refusal> {
    if request.flags & !(flags | flag::FUA) != 0 {
        return invalid("a command flag that this command does not have");
    }
    Ok(())
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

/// Checks the range of a request. `beyond` is the error if the range extends beyond the end of the export.
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
