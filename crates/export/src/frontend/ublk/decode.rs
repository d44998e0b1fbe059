//! Decodes messages into requests.

use dashpot_sys::ublk::{flag, op};
use rustix::io::Errno;

use super::encode;
use super::wire::{DATA_MAX, HEAD, Message, SECTOR};
use crate::export::ExportInfo;
use crate::frontend::boundary::{Decoded, Operation, Request};
use crate::frontend::kernel::check_range;

/// Decodes the first message of `received`. The transport gives only whole messages, so a part of a message
/// is [`Decoded::Broken`].
#[inline]
pub fn decode(received: &[u8], export: &ExportInfo) -> Decoded {
    if received.is_empty() {
        return Decoded::More;
    }
    let Some(message) = Message::first(received) else {
        return Decoded::Broken;
    };
    match requested(&message, export) {
        Ok(request) => Decoded::Request {
            request,
            taken: HEAD,
        },
        Err(errno) => Decoded::Answered {
            reply: encode::refusal(message.head.tag, errno),
            taken: message.len(),
            skip: 0,
        },
    }
}

/// The request that the driver's description asks for, if the range lies within the export and the export
/// allows the operation.
#[inline]
fn requested(message: &Message<'_>, export: &ExportInfo) -> Result<Request, Errno> {
    let (cookie, descriptor) = (message.head.tag.into(), message.head.descriptor);
    let fua = descriptor.has(flag::FUA);
    let operation = match descriptor.op() {
        op::READ => Operation::Read,
        op::WRITE => Operation::Write { fua },
        op::FLUSH => Operation::Flush,
        op::DISCARD => Operation::Trim { fua },
        op::WRITE_ZEROES => Operation::Zero {
            fua,
            no_hole: descriptor.has(flag::NO_UNMAP),
        },
        _ => return Err(Errno::OPNOTSUPP),
    };
    let request = match operation {
        Operation::Flush => Request {
            cookie,
            operation,
            offset: 0,
            length: 0,
        },
        _ => {
            let offset = descriptor.first_sector.checked_mul(SECTOR);
            let length = u64::from(descriptor.sectors) * SECTOR;
            check_range(
                export,
                cookie,
                operation,
                offset.ok_or(Errno::INVAL)?,
                length,
            )?
        }
    };
    let is_io = matches!(operation, Operation::Read | Operation::Write { .. });
    if request.payload() != message.head.data || is_io && request.length > DATA_MAX {
        return Err(Errno::INVAL);
    }
    Ok(request)
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
