//! Tests how messages are decoded.

use polyfuse_kernel as abi;
use polyfuse_kernel::{
    fuse_attr_out, fuse_fallocate_in, fuse_fsync_in, fuse_in_header, fuse_open_out,
    fuse_out_header, fuse_read_in, fuse_write_in,
};
use proptest::prelude::{Strategy, any, prop_assert, prop_oneof, proptest};
use proptest::sample::select;
use rustix::io::Errno;
use zerocopy::{FromBytes, Immutable, IntoBytes};

use super::decode;
use crate::export::{ExportInfo, Power};
use crate::frontend::boundary::{Decoded, Operation, Request};

fn export(read_only: bool) -> ExportInfo {
    ExportInfo {
        name: "a".into(),
        description: String::new(),
        size: 1 << 20,
        block: 512,
        preferred: 512,
        read_only,
        power: Power::default(),
    }
}

/// A message with these arguments, followed by a payload.
fn message(opcode: u32, arguments: &(impl IntoBytes + Immutable), payload: &[u8]) -> Vec<u8> {
    let body = [arguments.as_bytes(), payload].concat();
    let header = fuse_in_header {
        len: (size_of::<fuse_in_header>() + body.len()) as u32,
        opcode,
        unique: 7,
        nodeid: 1,
        ..fuse_in_header::default()
    };
    [header.as_bytes(), &body].concat()
}

fn write(offset: u64, size: u32, payload: &[u8]) -> Vec<u8> {
    let arguments = fuse_write_in {
        offset,
        size,
        ..fuse_write_in::default()
    };
    message(abi::FUSE_WRITE, &arguments, payload)
}

fn read(offset: u64, size: u32) -> Vec<u8> {
    let arguments = fuse_read_in {
        offset,
        size,
        ..fuse_read_in::default()
    };
    message(abi::FUSE_READ, &arguments, &[])
}

fn fallocate(mode: u32, offset: u64, length: u64) -> Vec<u8> {
    let arguments = fuse_fallocate_in {
        offset,
        length,
        mode,
        ..fuse_fallocate_in::default()
    };
    message(abi::FUSE_FALLOCATE, &arguments, &[])
}

fn requested(bytes: &[u8]) -> (Request, usize) {
    match decode(bytes, &export(false)) {
        Decoded::Request { request, taken } => (request, taken),
        other => panic!("{other:?}"),
    }
}

/// Decodes a message, which must be answered with an error. Returns the error.
fn error(bytes: &[u8], export: &ExportInfo) -> i32 {
    match decode(bytes, export) {
        Decoded::Answered { reply, taken, skip } => {
            assert_eq!((taken, skip), (bytes.len(), 0));
            fuse_out_header::read_from_bytes(&reply).unwrap().error
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn reads_writes_flushes_and_ranges_are_requests() {
    let (request, taken) = requested(&read(512, 4096));
    assert_eq!(request.operation, Operation::Read);
    assert_eq!(
        (request.cookie, request.offset, request.length),
        (7, 512, 4096)
    );
    assert_eq!(taken, read(512, 4096).len());

    let bytes = write(1024, 512, &[1; 512]);
    let (request, taken) = requested(&bytes);
    assert_eq!(request.operation, Operation::Write { fua: false });
    assert_eq!((request.payload(), taken), (512, bytes.len() - 512));

    let flush = message(abi::FUSE_FSYNC, &fuse_fsync_in::default(), &[]);
    assert_eq!(requested(&flush).0.operation, Operation::Flush);
    let (punch_hole, zero_range) = (0x03, 0x11);
    let fua = false;
    let (request, _) = requested(&fallocate(punch_hole, 0, 4096));
    assert_eq!(request.operation, Operation::Trim { fua });
    let (request, _) = requested(&fallocate(zero_range, 0, 4096));
    assert_eq!(request.operation, Operation::Zero { fua, no_hole: true });
}

#[test]
fn what_the_disk_cannot_do_is_refused_and_taken_with_its_payload() {
    let invalid = -Errno::INVAL.raw_os_error();
    for bytes in [
        read(1 << 20, 512),
        read(u64::MAX - 511, 512),
        read(100, 512),
        read(0, 0),
        write(0, 1024, &[1; 512]),
        write((1 << 20) - 512, 1024, &[1; 1024]),
        fallocate(3, 0, 1 << 33),
        message(abi::FUSE_READ, &0_u32, &[]),
    ] {
        assert_eq!(error(&bytes, &export(false)), invalid);
    }
    let unsupported = -Errno::OPNOTSUPP.raw_os_error();
    assert_eq!(error(&fallocate(0, 0, 512), &export(false)), unsupported);
    let read_only = -Errno::ROFS.raw_os_error();
    assert_eq!(error(&write(0, 512, &[1; 512]), &export(true)), read_only);
    let unknown = message(abi::FUSE_IOCTL, &0_u64, &[]);
    let not_known = -Errno::NOSYS.raw_os_error();
    assert_eq!(error(&unknown, &export(false)), not_known);
}

#[test]
fn the_file_is_as_long_as_the_disk_and_opened_for_direct_io() {
    let answer = |bytes: &[u8], export: &ExportInfo| match decode(bytes, export) {
        Decoded::Answered { reply, .. } => reply[size_of::<fuse_out_header>()..].to_vec(),
        other => panic!("{other:?}"),
    };
    let getattr = message(abi::FUSE_GETATTR, &[0_u64; 2], &[]);
    let found = fuse_attr_out::read_from_bytes(&answer(&getattr, &export(true))).unwrap();
    assert_eq!((found.attr.size, found.attr.mode), (1 << 20, 0o100_400));
    let open = message(abi::FUSE_OPEN, &0_u64, &[]);
    let opened = fuse_open_out::read_from_bytes(&answer(&open, &export(false))).unwrap();
    assert_eq!(opened.open_flags, 0b100_0001);
}

#[test]
fn a_message_that_wants_no_reply_gets_none() {
    let forget = message(abi::FUSE_FORGET, &1_u64, &[]);
    let decoded = decode(&forget, &export(false));
    assert!(matches!(decoded, Decoded::Ignored { taken } if taken == forget.len()));
}

#[test]
fn a_message_that_is_not_whole_ends_the_connection() {
    let whole = write(0, 512, &[1; 512]);
    for length in [1, 39, 40, whole.len() - 1] {
        let decoded = decode(&whole[..length], &export(false));
        assert!(matches!(decoded, Decoded::Broken), "{length}");
    }
    assert!(matches!(decode(&[], &export(false)), Decoded::More));
}

/// Messages with random arguments. Some have a wrong length in their header.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let opcodes = select(vec![
        abi::FUSE_READ,
        abi::FUSE_WRITE,
        abi::FUSE_FSYNC,
        abi::FUSE_FALLOCATE,
        abi::FUSE_INIT,
        abi::FUSE_OPEN,
        abi::FUSE_GETATTR,
        abi::FUSE_INTERRUPT,
    ]);
    let word = prop_oneof![
        0..4_u64,
        (0..4096_u64).prop_map(|at| at * 512),
        any::<u64>()
    ];
    let words = proptest::collection::vec(word, 0..80);
    (opcodes, words, any::<bool>(), any::<u8>()).prop_map(|(opcode, words, lies, cut)| {
        let payload = words.as_bytes();
        let mut bytes = message(opcode, &[0_u8; 0], payload);
        if lies {
            bytes[0] = cut;
        }
        bytes
    })
}

proptest! {
    /// For every message, the decoder takes no more bytes than have arrived, and a decoded request lies
    /// within the disk.
    #[test]
    fn nothing_beyond_the_message_or_the_disk_is_taken(bytes in any_message()) {
        match decode(&bytes, &export(false)) {
            Decoded::Request { request, taken } => {
                prop_assert!(taken + request.payload() as usize <= bytes.len());
                prop_assert!(request.offset + u64::from(request.length) <= 1 << 20);
                let is_flush = request.operation == Operation::Flush;
                prop_assert!(is_flush || request.length > 0);
            }
            Decoded::Answered { taken, skip, .. } => {
                prop_assert!(taken <= bytes.len() && skip == 0);
            }
            Decoded::Ignored { taken } => prop_assert!(taken <= bytes.len()),
            Decoded::More | Decoded::Broken => {}
            other => prop_assert!(false, "{other:?}"),
        }
    }
}
