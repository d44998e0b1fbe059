//! Whether a request may be served.

use rustix::io::Errno;

use crate::export::ExportInfo;
use crate::frontend::boundary::{Operation, Request};

/// The request for a range, if the export has it and allows the operation.
#[inline]
pub(super) fn check(
    export: &ExportInfo,
    cookie: u64,
    operation: Operation,
    offset: u64,
    length: u64,
) -> Result<Request, Errno> {
    if export.read_only && !matches!(operation, Operation::Read) {
        return Err(Errno::ROFS);
    }
    let block = u64::from(export.block);
    let is_aligned = offset.is_multiple_of(block) && length.is_multiple_of(block);
    let end = offset.checked_add(length).ok_or(Errno::INVAL)?;
    if length == 0 || !is_aligned || end > export.size {
        return Err(Errno::INVAL);
    }
    Ok(Request {
        cookie,
        operation,
        offset,
        length: u32::try_from(length).map_err(|_| Errno::INVAL)?,
    })
}
