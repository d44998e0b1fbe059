//! Reads a file of a recording: for any bytes, the reader refuses them with an error of one line, or returns I/Os, in
//! bounded memory. The reader does not compare checksums here, because random bytes would never have the right
//! checksums.

#![no_main]

use std::sync::Once;

use dashpot_recording::read_unverified;
use libfuzzer_sys::fuzz_target;

/// Some bytes make the Parquet crate panic, and the reader catches that. But libFuzzer ends the program at
/// any panic, even at one that is caught. With this hook, only a panic that the reader does not catch ends
/// the program.
static KEEP_GOING: Once = Once::new();

fuzz_target!(|bytes: &[u8]| {
    KEEP_GOING.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    if let Err(error) = read_unverified(bytes.to_vec()) {
        assert!(!error.to_string().contains('\n'));
    }
});
