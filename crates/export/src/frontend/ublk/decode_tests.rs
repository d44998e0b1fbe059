//! Tests how messages are decoded.

use dashpot_sys::ublk::{Descriptor, flag, op};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use rustix::io::Errno;
use zerocopy::FromBytes;

use super::super::wire::{DATA_MAX, HEAD, Reply, message};
use super::decode;
use crate::export::{ExportInfo, Power};
use crate::frontend::boundary::{Decoded, Operation, Request};

const SIZE: u64 = 4 << 20;

fn export(read_only: bool) -> ExportInfo {
    ExportInfo {
        name: "a".into(),
        description: String::new(),
        size: SIZE,
        block: 4096,
        preferred: 4096,
        read_only,
        power: Power::default(),
    }
}

fn of(op: u8, flags: u32, first_sector: u64, sectors: u32) -> Descriptor {
    Descriptor {
        op_flags: u32::from(op) | flags,
        sectors,
        first_sector,
        address: 0,
    }
}

fn requested(descriptor: Descriptor, data: &[u8]) -> Request {
    match decode(&message(7, descriptor, data), &export(false)) {
        Decoded::Request { request, taken } => {
            assert_eq!((taken, request.cookie), (HEAD, 7));
            request
        }
        other => panic!("{other:?}"),
    }
}

/// Decodes a message, which must be answered with an error. Returns the error.
fn error(descriptor: Descriptor, data: &[u8], export: &ExportInfo) -> Errno {
    let bytes = message(7, descriptor, data);
    match decode(&bytes, export) {
        Decoded::Answered { reply, taken, skip } => {
            assert_eq!((taken, skip), (bytes.len(), 0));
            let reply = Reply::read_from_bytes(&reply).unwrap();
            assert_eq!(reply.tag, 7);
            Errno::from_raw_os_error(-reply.result)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_operation_arrives_as_such() {
    let read = requested(of(op::READ, 0, 8, 16), &[]);
    assert_eq!(read.operation, Operation::Read);
    assert_eq!((read.offset, read.length), (4096, 8192));
    let write = requested(of(op::WRITE, flag::FUA, 0, 8), &[1; 4096]);
    assert_eq!(write.operation, Operation::Write { fua: true });
    assert_eq!(write.payload(), 4096);
    let flush = requested(of(op::FLUSH, 0, 0, 0), &[]);
    assert_eq!(flush.operation, Operation::Flush);
    let fua = false;
    let trim = requested(of(op::DISCARD, 0, 0, 8192), &[]);
    assert_eq!(
        (trim.operation, trim.length),
        (Operation::Trim { fua }, 4 << 20)
    );
    for (flags, no_hole) in [(0, false), (flag::NO_UNMAP, true)] {
        let zero = requested(of(op::WRITE_ZEROES, flags, 0, 8), &[]);
        assert_eq!(zero.operation, Operation::Zero { fua, no_hole });
    }
}

#[test]
fn what_the_disk_cannot_do_is_refused_and_taken_with_its_data() {
    let too_long = DATA_MAX / 512 + 8;
    for (descriptor, data) in [
        (of(op::READ, 0, 8192, 8), &[][..]),
        (of(op::READ, 0, u64::MAX, 8), &[]),
        (of(op::READ, 0, 1, 8), &[]),
        (of(op::READ, 0, 0, 0), &[]),
        (of(op::READ, 0, 0, too_long), &[]),
        (of(op::READ, 0, 0, 8), &[1; 4096]),
        (of(op::WRITE, 0, 0, 8), &[]),
        (of(op::WRITE, 0, 0, 8), &[1; 512]),
        (of(op::DISCARD, 0, 0, u32::MAX), &[]),
        (of(op::FLUSH, 0, 0, 0), &[1; 512]),
    ] {
        assert_eq!(
            error(descriptor, data, &export(false)),
            Errno::INVAL,
            "{descriptor:?}"
        );
    }
    let unknown = of(15, 0, 0, 8);
    assert_eq!(error(unknown, &[], &export(false)), Errno::OPNOTSUPP);
    let write = of(op::WRITE, 0, 0, 8);
    assert_eq!(error(write, &[1; 4096], &export(true)), Errno::ROFS);
}

#[test]
fn a_message_that_is_not_whole_ends_the_connection() {
    let whole = message(0, of(op::WRITE, 0, 0, 8), &[1; 4096]);
    for length in [1, HEAD - 1, HEAD, whole.len() - 1] {
        let decoded = decode(&whole[..length], &export(false));
        assert!(matches!(decoded, Decoded::Broken), "{length}");
    }
    assert!(matches!(decode(&[], &export(false)), Decoded::More));
}

fn any_descriptor() -> impl Strategy<Value = Descriptor> {
    let flags = any::<u32>().prop_map(|flags| flags & !0xff);
    let first = prop_oneof![(0..1100_u64).prop_map(|at| at * 8), any::<u64>()];
    let sectors = prop_oneof![(0..300_u32).prop_map(|count| count * 8), any::<u32>()];
    (0..20_u8, flags, first, sectors)
        .prop_map(|(op, flags, first, sectors)| of(op, flags, first, sectors))
}

proptest! {
    /// For every description, a decoded request lies within the disk, and its data within the message.
    #[test]
    fn no_request_leaves_the_disk_or_the_message(
        descriptor in any_descriptor(),
        data in prop_oneof![0..2_usize, 0..40_usize],
        read_only in any::<bool>(),
    ) {
        let bytes = message(9, descriptor, &vec![0; data * 4096]);
        match decode(&bytes, &export(read_only)) {
            Decoded::Request { request, taken } => {
                prop_assert_eq!(taken + request.payload() as usize, bytes.len());
                prop_assert!(request.offset + u64::from(request.length) <= SIZE);
                prop_assert!(request.offset % 4096 == 0 && request.length % 4096 == 0);
                let is_flush = request.operation == Operation::Flush;
                prop_assert!(is_flush || request.length > 0);
                prop_assert!(!read_only || matches!(request.operation, Operation::Read | Operation::Flush));
            }
            Decoded::Answered { taken, skip, .. } => {
                prop_assert_eq!((taken, skip), (bytes.len(), 0));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
