//! Feeds bytes in pieces to the handshake of NBD: no input may cause a panic or take much memory, and the lengths of
//! the pieces must not change the result.
//!
//! The first byte is the number of piece lengths that follow it; the remaining bytes are the client's data.

#![no_main]

use std::sync::Arc;

use dashpot_export::frontend::nbd::handshake::{Handshake, Progress, UNSENT_MAX};
use dashpot_export::{ExportInfo, Power};
use libfuzzer_sys::fuzz_target;

/// With the exports below, the answer to any single option is shorter than this.
const ANSWER_MAX: usize = 16 << 10;

fuzz_target!(|data: &[u8]| {
    let Some((&count, rest)) = data.split_first() else {
        return;
    };
    let (lengths, bytes) = rest.split_at(rest.len().min(count.into()));
    let whole = run(&[bytes]);
    assert_eq!(run(&pieces(bytes, lengths)), whole);
    assert!(whole.1.len() <= UNSENT_MAX + ANSWER_MAX);
});

fn pieces<'a>(mut bytes: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for &length in lengths {
        let (piece, rest) = bytes.split_at(bytes.len().min(length.into()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces.push(bytes);
    pieces
}

fn run(pieces: &[&[u8]]) -> (Progress, Vec<u8>) {
    let mut handshake = Handshake::new(exports());
    let mut output = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        match handshake.input(piece, &mut output) {
            Progress::More => {}
            Progress::Close => return (Progress::Close, output),
            Progress::Ready(mut negotiated) => {
                negotiated.left_over.extend(pieces[index + 1..].concat());
                return (Progress::Ready(negotiated), output);
            }
        }
    }
    (Progress::More, output)
}

fn exports() -> Arc<[ExportInfo]> {
    let export = |name: &str, block, read_only| ExportInfo {
        name: name.into(),
        description: format!("disk {name}"),
        size: 1 << 30,
        block,
        preferred: block,
        read_only,
        power: Power::default(),
    };
    Arc::new([export("a", 512, false), export("b", 1, true)])
}
