//! Finds out whether the file that is being filled has slow I/Os and should therefore be kept longer than
//! other files.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dashpot_observe::{FinishedIo, Layer};

use crate::seconds::Seconds;

/// The reason to keep the file that is being filled, if it has slow I/Os.
#[derive(Default)]
pub(super) struct Slow {
    /// The first reason that was found.
    why: Option<Why>,
    /// When the last I/O of each device of a layer ended.
    ended_ns: BTreeMap<Layer, HashMap<Arc<str>, u64, foldhash::fast::RandomState>>,
}

/// Why a file has slow I/Os.
pub(super) struct Why {
    /// The slow device, if the reason is about one.
    pub(super) device: Option<String>,
    /// The reason. If it is about one device, the text begins with the device's layer, because devices of
    /// several layers may have the same name.
    pub(super) text: String,
}

/// An I/O that takes longer than this is slow on every device.
const OLD_NS: u64 = 1_000_000_000;
/// A device is frozen if it has I/O in flight and completes no I/O for at least this time, and for at least
/// [`FREEZE_TIMES`] times its median latency.
const FREEZE_NS: u64 = 50_000_000;
/// A frozen device completes no I/O for this many times its median latency.
const FREEZE_TIMES: u64 = 10;

impl Slow {
    /// Notes why this I/O or its device is slow, unless a reason is already known.
    pub(super) fn is(&mut self, why: &'static str, io: &FinishedIo) {
        self.why.get_or_insert_with(|| Why {
            device: Some(io.device.to_string()),
            text: format!("{}: {why}", io.layer.word()),
        });
    }

    /// Notes a reason that is not about one device, unless a reason is already known.
    pub(super) fn is_somewhere(&mut self, why: &'static str) {
        self.why.get_or_insert_with(|| Why {
            device: None,
            text: why.to_owned(),
        });
    }

    /// Looks at an I/O that has ended.
    pub(super) fn look(&mut self, io: &FinishedIo, seconds: &mut Seconds) {
        if io.total_ns() >= OLD_NS {
            self.is("an I/O took more than 1 s", io);
        }
        let ended_ns = self.ended_ns.entry(io.layer).or_default();
        let Some(before_ns) = ended_ns.get_mut(&io.device) else {
            ended_ns.insert(Arc::clone(&io.device), io.ended_ns);
            return;
        };
        let gap_ns = io.ended_ns.saturating_sub(*before_ns);
        *before_ns = io.ended_ns.max(*before_ns);
        // In a gap, no I/O of the device ended, although this I/O was in flight all the time.
        let is_gap = gap_ns >= FREEZE_NS && io.total_ns() >= gap_ns;
        let is_unusual = |median_ns: u64| gap_ns >= median_ns.saturating_mul(FREEZE_TIMES);
        if is_gap && seconds.median_ns(io).is_some_and(is_unusual) {
            self.is("nothing completed for 50 ms or more", io);
        }
    }

    /// Looks at the I/Os in flight.
    pub(super) fn oldest(&mut self, in_flight: &[FinishedIo], now_ns: u64) {
        let is_old = |io: &&FinishedIo| now_ns.saturating_sub(io.begun_ns) >= OLD_NS;
        if let Some(io) = in_flight.iter().find(is_old) {
            self.is("an I/O has been in flight for more than 1 s", io);
        }
    }

    /// Returns the reason to keep the file, and forgets it.
    pub(super) fn take(&mut self) -> Option<Why> {
        self.why.take()
    }
}
