//! The transmission flags and the preferred block size that the server sends to NBD clients.

use crate::export::ExportInfo;

/// The preferred block size in bytes: the smallest request that needs no read-modify-write.
pub(super) fn preferred_block(export: &ExportInfo) -> u32 {
    export.block.max(export.preferred).max(PAGE)
}

/// The transmission flags. `structured` says whether structured replies were negotiated.
///
/// FAST_ZERO would promise that zeroing is faster than writing. An injected delay would break that promise,
/// so FAST_ZERO is never set.
pub fn transmission_flags(read_only: bool, structured: bool) -> u16 {
    let writes = if read_only {
        READ_ONLY
    } else {
        SEND_TRIM | SEND_WRITE_ZEROES
    };
    let fragments = if structured { SEND_DF } else { 0 };
    HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN | SEND_CACHE | writes | fragments
}

/// The protocol's own default for the preferred block size, in bytes.
const PAGE: u32 = 4096;

const HAS_FLAGS: u16 = 1 << 0;
const READ_ONLY: u16 = 1 << 1;
const SEND_FLUSH: u16 = 1 << 2;
const SEND_FUA: u16 = 1 << 3;
const SEND_TRIM: u16 = 1 << 5;
const SEND_WRITE_ZEROES: u16 = 1 << 6;
const SEND_DF: u16 = 1 << 7;
const CAN_MULTI_CONN: u16 = 1 << 8;
const SEND_CACHE: u16 = 1 << 10;

#[cfg(test)]
mod tests {
    use super::{preferred_block, transmission_flags};
    use crate::export::{ExportInfo, Power};

    fn export(block: u32) -> ExportInfo {
        ExportInfo {
            name: "a".into(),
            description: String::new(),
            size: 1 << 20,
            block,
            preferred: block,
            read_only: false,
            power: Power::default(),
        }
    }

    #[test]
    fn flags_follow_what_was_negotiated() {
        assert_eq!(transmission_flags(false, false), 0x056d);
        assert_eq!(transmission_flags(false, true), 0x05ed);
        assert_eq!(transmission_flags(true, false), 0x050f);
    }

    #[test]
    fn the_preferred_block_is_never_below_the_smallest() {
        assert_eq!(preferred_block(&export(1)), 4096);
        assert_eq!(preferred_block(&export(65_536)), 65_536);
    }
}
