//! The kernel's disks, watched by a thread of their own: whoever prints may be held up by a terminal,
//! a pipe or a disk, and what is not read in time is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::anyhow;
use dashpot_probe::Device;

use super::priority;
use super::question::Question;
use super::reader::{KernelInterval, Reader, Told};
use super::ticks::{Ticks, now_ns};
use crate::report::in_flight::Mention;
use crate::report::interval::DeviceInterval;

/// Devices of the kernel being watched.
pub(crate) struct KernelWatch {
    stopped: Arc<AtomicBool>,
    told: Receiver<Told>,
    reader: Option<JoinHandle<()>>,
    /// The interval that was told of last, without what its devices did.
    last: KernelInterval,
}

/// Intervals that wait to be printed; beyond, the reader waits too.
const WAITING: usize = 2;

impl KernelWatch {
    pub(super) fn new(
        devices: &[Device],
        question: &Question,
        interval: dashpot_engine::Duration,
        count: Option<u64>,
    ) -> anyhow::Result<KernelWatch> {
        // Before there is something in the kernel that signals must not leave there.
        let ticks = Ticks::new(interval.as_nanos(), count)?;
        let stopped = ticks.stopper();
        let reader = Reader::new(devices, question, ticks)?;
        let (tell, told) = sync_channel(WAITING);
        let reader = thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || {
                priority::raise();
                if let Some(untold) = reader.run(&tell) {
                    // The report has it if somebody takes it yet.
                    let _ = tell.send(untold);
                }
            })?;
        Ok(KernelWatch {
            stopped,
            told,
            reader: Some(reader),
            last: KernelInterval::default(),
        })
    }

    /// How long ago the interval that was told of last has ended.
    pub(super) fn age(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.last.end_ns))
    }

    pub(super) fn mention(&self) -> Mention {
        self.last.mention
    }

    pub(super) fn lost(&self) -> u64 {
        self.last.lost
    }

    pub(super) fn unmatched(&self) -> u64 {
        self.last.unmatched
    }

    pub(super) fn gone(&self) -> &[String] {
        &self.last.gone
    }

    pub(super) fn vanished(&self) -> &[String] {
        &self.last.vanished
    }

    pub(super) fn next(&mut self) -> anyhow::Result<Option<Vec<DeviceInterval>>> {
        let Ok(interval) = self.told.recv() else {
            self.join()?;
            return Ok(None);
        };
        self.last = interval?;
        Ok(Some(std::mem::take(&mut self.last.devices)))
    }

    /// Waits until the thread has put away what it has in the kernel.
    fn join(&mut self) -> anyhow::Result<()> {
        let ended = self.reader.take().map_or(Ok(()), JoinHandle::join);
        ended.map_err(|_| anyhow!("the thread that reads the kernel's events has failed"))
    }
}

impl Drop for KernelWatch {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        while self.told.recv().is_ok() {}
        let _ = self.join();
    }
}
