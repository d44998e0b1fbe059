//! Decodes a message of FUSE: for any message, a request lies within the export and its payload within the message.
//!
//! The first byte chooses the export. The second byte chooses the operation, so that most inputs get past the
//! header.

#![no_main]

use dashpot_export::frontend::{Decoded, Operation, Request, fuse};
use dashpot_export::{ExportInfo, Power};
use libfuzzer_sys::fuzz_target;

const SIZE: u64 = 1 << 30;
/// The size of the header, in which the length comes first and the operation second.
const HEADER: usize = 40;

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, opcode], rest)) = data.split_first_chunk() else {
        return;
    };
    if rest.len() < HEADER {
        return;
    }
    let mut message = rest.to_vec();
    if choice & 32 == 0 {
        let length = message.len() as u32;
        message[..4].copy_from_slice(&length.to_le_bytes());
        message[4..8].copy_from_slice(&u32::from(opcode % 52).to_le_bytes());
    }
    let export = export(choice);
    match fuse::decode(&message, &export) {
        Decoded::Request { request, taken } => check(&request, taken, &message, &export),
        Decoded::Answered { taken, skip, reply } => {
            assert!(taken + skip as usize <= message.len() && !reply.is_empty());
        }
        Decoded::Ignored { taken } => assert!(taken <= message.len()),
        Decoded::Call { .. } => panic!("the kernel makes no calls of programs"),
        Decoded::Extents { .. } => panic!("the kernel never asks for extents"),
        Decoded::Withdrawn { .. } => panic!("the kernel never withdraws a request"),
        Decoded::More | Decoded::Goodbye | Decoded::Broken => {}
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
