//! Decodes and checks a request of NBD: for any 28 bytes, an accepted request lies within the export.
//!
//! The first byte chooses the export and the negotiated options. The fuzz target writes the magic number itself, so no
//! request is refused for its magic number.

#![no_main]

use dashpot_export::frontend::Operation;
use dashpot_export::frontend::nbd::check::{Accepted, DRAIN_MAX, Refused, check};
use dashpot_export::frontend::nbd::handshake::Features;
use dashpot_export::frontend::nbd::wire::{PAYLOAD_MAX, REQUEST_LEN, RequestHeader, command};
use dashpot_export::{ExportInfo, Power};
use libfuzzer_sys::fuzz_target;

const SIZE: u64 = 1 << 30;
const MAGIC: [u8; 4] = [0x25, 0x60, 0x95, 0x13];

fuzz_target!(|data: &[u8]| {
    let Some((&[choice], Some(&fields))) = data
        .split_first_chunk()
        .map(|(choice, rest)| (choice, rest.first_chunk::<{ REQUEST_LEN - 4 }>()))
    else {
        return;
    };
    let mut bytes = [0; REQUEST_LEN];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..].copy_from_slice(&fields);
    let request = RequestHeader::parse(&bytes).expect("the magic is right");
    serve(&request, choice);
});

fn serve(request: &RequestHeader, choice: u8) {
    let export = ExportInfo {
        name: "a".into(),
        description: String::new(),
        size: SIZE,
        block: 1 << (choice & 15),
        preferred: 1 << (choice & 15),
        read_only: choice & 16 != 0,
        power: Power::default(),
    };
    let features = Features {
        structured: choice & 32 != 0,
        base_allocation: choice & 64 != 0,
    };
    match check(request, &export, features) {
        Ok(Accepted::Io(Operation::Flush) | Accepted::Disconnect) => {}
        Ok(asked) => accepted(request, &export, asked),
        Err(Refused::Drop) => assert!(request.length > DRAIN_MAX),
        Err(Refused::Reply { payload, .. }) => {
            let is_write = request.command == command::WRITE;
            assert_eq!(payload, if is_write { request.length } else { 0 });
        }
    }
}

fn accepted(request: &RequestHeader, export: &ExportInfo, asked: Accepted) {
    let (offset, length) = (u128::from(request.offset), u128::from(request.length));
    assert!(length > 0 && offset + length <= u128::from(SIZE));
    assert_eq!((offset | length) % u128::from(export.block), 0);
    let carries = matches!(
        asked,
        Accepted::Io(Operation::Read | Operation::Write { .. })
    );
    assert!(!carries || request.length <= PAYLOAD_MAX);
    let reads = matches!(
        asked,
        Accepted::Io(Operation::Read | Operation::Cache) | Accepted::BlockStatus { .. }
    );
    assert!(reads || !export.read_only);
}
