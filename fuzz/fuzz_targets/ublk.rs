//! Decodes messages that describe requests, as ublk's driver sends them. For any message, a request that the decoder
//! accepts must lie within the export, and its data within the message.
//!
//! The first byte chooses the export. The second byte chooses the operation, so that most inputs get past the head.

#![no_main]

use dashpot_export::frontend::{Decoded, Operation, Request, ublk};
use dashpot_export::{ExportInfo, Power};
use libfuzzer_sys::fuzz_target;

const SIZE: u64 = 1 << 30;
/// The size of the head of a message: the tag, the length of the data, and the description, which begins with the
/// operation.
const HEAD: usize = 32;

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, op], rest)) = data.split_first_chunk() else {
        return;
    };
    if rest.len() < HEAD {
        return;
    }
    let mut message = rest.to_vec();
    if choice & 32 == 0 {
        let length = (message.len() - HEAD) as u32;
        message[4..8].copy_from_slice(&length.to_ne_bytes());
        message[8..12].copy_from_slice(&u32::from(op % 8).to_ne_bytes());
    }
    let export = export(choice);
    match ublk::decode(&message, &export) {
        Decoded::Request { request, taken } => check(&request, taken, &message, &export),
        Decoded::Answered { taken, skip, reply } => {
            assert!(taken <= message.len() && skip == 0 && !reply.is_empty());
        }
        Decoded::Broken => {}
        other => panic!("{other:?}"),
    }
});

fn check(request: &Request, taken: usize, message: &[u8], export: &ExportInfo) {
    assert!(taken + request.payload() as usize <= message.len());
    if request.operation == Operation::Flush {
        return;
    }
    let (offset, length) = (u128::from(request.offset), u128::from(request.length));
    assert!(length > 0 && offset + length <= u128::from(SIZE));
    assert_eq!((offset | length) % u128::from(export.block), 0);
    assert!(request.operation == Operation::Read || !export.read_only);
}

fn export(choice: u8) -> ExportInfo {
    ExportInfo {
        name: "a".into(),
        description: String::new(),
        size: SIZE,
        block: 1 << (choice & 15),
        preferred: 1 << (choice & 15),
        read_only: choice & 16 != 0,
        power: Power::default(),
    }
}
