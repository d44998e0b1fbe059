//! What a client may know of an export before it uses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// One export, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportInfo {
    /// The name that clients ask for, at most [`crate::frontend::nbd::wire::STRING_MAX`] bytes.
    pub name: String,
    /// A line for people, or nothing.
    pub description: String,
    /// Its size in bytes: a multiple of `block`, or its last bytes cannot be reached.
    pub size: u64,
    /// The smallest read or write and its alignment, in bytes: a power of two, 1 to 64 KiB.
    pub block: u32,
    /// Whether writes are refused.
    pub read_only: bool,
    /// Whether it can be used at all; all clones of an export share it.
    pub power: Power,
}

/// The power of a disk. It is on, until its shard switches it off.
#[derive(Clone, Debug, Default)]
pub struct Power {
    off: Arc<AtomicBool>,
}

impl Power {
    /// Whether it is off, so that nobody may connect.
    pub fn is_off(&self) -> bool {
        self.off.load(Ordering::Acquire)
    }

    /// Switches it on or off.
    pub(crate) fn switch(&self, on: bool) {
        self.off.store(!on, Ordering::Release);
    }
}

impl PartialEq for Power {
    fn eq(&self, other: &Power) -> bool {
        self.is_off() == other.is_off()
    }
}

impl Eq for Power {}

impl ExportInfo {
    /// The smallest request that needs no read-modify-write, in bytes.
    pub fn preferred_block(&self) -> u32 {
        self.block.max(PAGE)
    }

    /// The transmission flags. `structured` says whether structured replies were negotiated.
    ///
    /// FAST_ZERO promises zeroes that are quicker than writes. An injected delay would make that
    /// a lie, so it is never among them.
    pub fn transmission_flags(&self, structured: bool) -> u16 {
        let writes = if self.read_only {
            READ_ONLY
        } else {
            SEND_TRIM | SEND_WRITE_ZEROES
        };
        let fragments = if structured { SEND_DF } else { 0 };
        HAS_FLAGS | SEND_FLUSH | SEND_FUA | CAN_MULTI_CONN | SEND_CACHE | writes | fragments
    }
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
    use super::*;

    fn export(block: u32, read_only: bool) -> ExportInfo {
        ExportInfo {
            name: "a".into(),
            description: String::new(),
            size: 1 << 20,
            block,
            read_only,
            power: Power::default(),
        }
    }

    #[test]
    fn flags_follow_what_was_negotiated() {
        assert_eq!(export(1, false).transmission_flags(false), 0x056d);
        assert_eq!(export(1, false).transmission_flags(true), 0x05ed);
        assert_eq!(export(1, true).transmission_flags(false), 0x050f);
    }

    #[test]
    fn the_preferred_block_is_never_below_the_smallest() {
        assert_eq!(export(1, false).preferred_block(), 4096);
        assert_eq!(export(65_536, false).preferred_block(), 65_536);
    }
}
