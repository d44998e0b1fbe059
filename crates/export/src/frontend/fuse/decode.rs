//! Decodes messages into requests, and answers messages about the file itself.

use std::time::Duration;

use polyfuse_kernel as abi;
use polyfuse_kernel::{
    FOPEN_DIRECT_IO, fuse_attr, fuse_attr_out, fuse_fallocate_in, fuse_init_in, fuse_kstatfs,
    fuse_open_out, fuse_read_in, fuse_statfs_out, fuse_write_in,
};
use rustix::fs::{FallocateFlags, FileType};
use rustix::io::Errno;

use super::wire::{FOPEN_PARALLEL_DIRECT_WRITES, Message, ROOT};
use super::{encode, handshake};
use crate::export::ExportInfo;
use crate::frontend::boundary::{Decoded, Operation, Request};
use crate::frontend::kernel::check_range;

/// Decodes the first message of `received`. The kernel gives only whole messages, so a part of a message is
/// [`Decoded::Broken`].
#[inline]
pub fn decode(received: &[u8], export: &ExportInfo) -> Decoded {
    if received.is_empty() {
        return Decoded::More;
    }
    let Some(message) = Message::first(received) else {
        return Decoded::Broken;
    };
    match message.header.opcode {
        abi::FUSE_READ | abi::FUSE_WRITE | abi::FUSE_FSYNC | abi::FUSE_FALLOCATE => {
            match io(&message, export) {
                Ok(request) => Decoded::Request {
                    request,
                    taken: message.len() - request.payload() as usize,
                },
                Err(errno) => answered(&message, encode::refusal(message.header.unique, errno)),
            }
        }
        abi::FUSE_FORGET | abi::FUSE_BATCH_FORGET => Decoded::Ignored {
            taken: message.len(),
        },
        _ => answered(&message, about_file(&message, export)),
    }
}

/// Turns a message about a range of the file's bytes into a request.
#[inline]
fn io(message: &Message<'_>, export: &ExportInfo) -> Result<Request, Errno> {
    let cookie = message.header.unique;
    match message.header.opcode {
        abi::FUSE_READ => {
            let (read, _) = message.arguments::<fuse_read_in>().ok_or(Errno::INVAL)?;
            let length = u64::from(read.size);
            check_range(export, cookie, Operation::Read, read.offset, length)
        }
        abi::FUSE_WRITE => {
            let (write, payload) = message.arguments::<fuse_write_in>().ok_or(Errno::INVAL)?;
            if payload.len() != write.size as usize {
                return Err(Errno::INVAL);
            }
            let operation = Operation::Write { fua: false };
            check_range(
                export,
                cookie,
                operation,
                write.offset,
                payload.len() as u64,
            )
        }
        abi::FUSE_FALLOCATE => {
            let range = message.arguments::<fuse_fallocate_in>();
            let (range, _) = range.ok_or(Errno::INVAL)?;
            let operation = of_range(range.mode).ok_or(Errno::OPNOTSUPP)?;
            check_range(export, cookie, operation, range.offset, range.length)
        }
        _ => Ok(Request {
            cookie,
            operation: Operation::Flush,
            offset: 0,
            length: 0,
        }),
    }
}

/// The operation that a `fallocate` with this mode asks for. A loop device punches holes for discards, and
/// also for zeroing that may leave holes.
fn of_range(mode: u32) -> Option<Operation> {
    let fua = false;
    let mode = FallocateFlags::from_bits(mode)?;
    match mode - FallocateFlags::KEEP_SIZE {
        FallocateFlags::PUNCH_HOLE => Some(Operation::Trim { fua }),
        FallocateFlags::ZERO_RANGE => Some(Operation::Zero { fua, no_hole: true }),
        _ => None,
    }
}

fn answered(message: &Message<'_>, reply: Vec<u8>) -> Decoded {
    Decoded::Answered {
        reply,
        taken: message.len(),
        skip: 0,
    }
}

/// The reply to a message that asks for no I/O. Messages that this function does not know are refused.
fn about_file(message: &Message<'_>, export: &ExportInfo) -> Vec<u8> {
    let cookie = message.header.unique;
    match message.header.opcode {
        abi::FUSE_INIT => {
            let init = message.arguments::<fuse_init_in>();
            let init = init.ok_or(Errno::PROTO);
            match init.and_then(|(init, _)| handshake::answer(init)) {
                Ok(answer) => encode::reply(cookie, &answer),
                Err(errno) => encode::refusal(cookie, errno),
            }
        }
        abi::FUSE_GETATTR => encode::reply(cookie, &attributes(export)),
        abi::FUSE_OPEN => encode::reply(cookie, &opened()),
        abi::FUSE_STATFS => encode::reply(cookie, &statistics(export)),
        abi::FUSE_RELEASE | abi::FUSE_DESTROY => encode::done(cookie),
        // The kernel remembers this refusal, and never sends most of these messages again.
        _ => encode::refusal(cookie, Errno::NOSYS),
    }
}

fn attributes(export: &ExportInfo) -> fuse_attr_out {
    let mode = if export.read_only { 0o400 } else { 0o600 };
    fuse_attr_out {
        attr_valid: FOR_EVER.as_secs(),
        attr: fuse_attr {
            ino: ROOT,
            size: export.size,
            blocks: export.size / SECTOR,
            mode: FileType::RegularFile.as_raw_mode() | mode,
            nlink: 1,
            blksize: export.block,
            ..fuse_attr::default()
        },
        ..fuse_attr_out::default()
    }
}

fn opened() -> fuse_open_out {
    fuse_open_out {
        open_flags: FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES,
        ..fuse_open_out::default()
    }
}

fn statistics(export: &ExportInfo) -> fuse_statfs_out {
    fuse_statfs_out {
        st: fuse_kstatfs {
            blocks: export.size / SECTOR,
            files: 1,
            // The loop driver uses this size as the granularity of discards.
            bsize: export.preferred.max(SECTOR as u32),
            frsize: SECTOR as u32,
            ..fuse_kstatfs::default()
        },
    }
}

/// How long the kernel may cache the file's attributes. In effect for ever, because a disk's size never
/// changes.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 60 * 60);
/// The unit of `blocks` in the file's attributes, in bytes.
const SECTOR: u64 = 512;

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
