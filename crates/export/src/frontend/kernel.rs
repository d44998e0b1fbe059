//! Checks ranges and translates errors, for the frontends that serve the kernel's own drivers.

use dashpot_engine::Errno;
use rustix::io::Errno as Number;

use super::boundary::{Operation, Request};
use crate::export::ExportInfo;

/// Makes the request for a range, if the range lies within the export and the export allows the operation.
#[inline]
pub(super) fn check_range(
    export: &ExportInfo,
    cookie: u64,
    operation: Operation,
    offset: u64,
    length: u64,
) -> Result<Request, Number> {
    if export.read_only && !matches!(operation, Operation::Read) {
        return Err(Number::ROFS);
    }
    let block = u64::from(export.block);
    let is_aligned = offset.is_multiple_of(block) && length.is_multiple_of(block);
    let end = offset.checked_add(length).ok_or(Number::INVAL)?;
    if length == 0 || !is_aligned || end > export.size {
        return Err(Number::INVAL);
    }
    Ok(Request {
        cookie,
        operation,
        offset,
        length: u32::try_from(length).map_err(|_| Number::INVAL)?,
    })
}

/// Linux's number for an error.
pub(super) fn number(errno: Errno) -> i32 {
    let number = match errno {
        Errno::Perm => Number::PERM,
        Errno::Io => Number::IO,
        Errno::NoMem => Number::NOMEM,
        Errno::Inval => Number::INVAL,
        Errno::NoSpc => Number::NOSPC,
        Errno::Overflow => Number::OVERFLOW,
        Errno::NotSup => Number::OPNOTSUPP,
        Errno::Shutdown => Number::SHUTDOWN,
        Errno::OfCall(errno) => return errno.number().into(),
    };
    number.raw_os_error()
}
