//! The I/Os of the kernel's disks, and the calls that sync files on them, on one clock.

use dashpot_observe::{FinishedIo, Layer, Seen};

use super::{KernelStream, Progress, Stream, SyncStream};
use crate::earlier::Earlier;
use crate::signals::now_ns;

/// A stream of the I/Os of the kernel's disks, and of the calls that sync files.
pub(crate) struct SyncedStream<'a> {
    pub(crate) disks: KernelStream,
    pub(crate) calls: SyncStream<'a>,
}

impl Stream for SyncedStream<'_> {
    fn now_ns(&self) -> anyhow::Result<u64> {
        Ok(now_ns())
    }

    fn read(&mut self, ios: &mut Vec<FinishedIo>) -> anyhow::Result<Progress> {
        let of_disks = self.disks.read(ios)?;
        let of_calls = self.calls.read(ios)?;
        Ok(Progress {
            missed: of_disks.missed + of_calls.missed,
            more: false,
            unplaced: of_calls.unplaced,
        })
    }

    fn in_flight(&mut self, now_ns: u64) -> Option<Vec<FinishedIo>> {
        let mut ios = self.disks.in_flight(now_ns)?;
        ios.extend(self.calls.in_flight(now_ns)?);
        Some(ios)
    }

    fn earlier(&self) -> Vec<Earlier> {
        self.disks.earlier()
    }

    fn names(&self, layer: Layer) -> Option<Vec<String>> {
        match layer {
            Layer::Fs => self.calls.names(layer),
            _ => self.disks.names(layer),
        }
    }

    fn tell(&mut self, is_last: bool, seen: &mut Seen) {
        self.disks.tell(is_last, seen);
    }
}
