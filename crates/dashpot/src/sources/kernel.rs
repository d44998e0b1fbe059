//! The kernel's disks, watched by a thread of their own: whoever prints may be held up by a terminal,
//! a pipe or a disk, and what is not read in time is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::anyhow;
use dashpot_observe::{DeviceInterval, Question, Span};
use dashpot_probe::Device;

use super::priority;
use super::reader::{KernelInterval, Reader, Tell, Told};
use super::signals::{Stop, now_ns};

/// Devices of the kernel being watched.
pub(crate) struct KernelWatch {
    stop: Stop,
    told: Receiver<Told>,
    /// The weight of the intervals that are told and not taken.
    waiting: Arc<AtomicUsize>,
    reader: Option<JoinHandle<()>>,
    /// The interval that was told of last, without what its devices did.
    last: KernelInterval,
}

impl KernelWatch {
    pub(super) fn new(
        devices: &[Device],
        question: &Question,
        interval: dashpot_engine::Duration,
        count: Option<u64>,
    ) -> anyhow::Result<KernelWatch> {
        // Before there is something in the kernel that signals must not leave there.
        let stop = Stop::new()?;
        let reader = Reader::new(devices, question, stop.clone(), interval.as_nanos(), count)?;
        let (way, told) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let tell = Tell {
            way,
            waiting: Arc::clone(&waiting),
        };
        let reader = thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || {
                priority::raise();
                if let Some(untold) = reader.run(&tell) {
                    // The report has it if somebody takes it yet.
                    let _ = tell.way.send(untold);
                }
            })?;
        Ok(KernelWatch {
            stop,
            told,
            waiting,
            reader: Some(reader),
            last: KernelInterval::default(),
        })
    }

    /// How long ago the interval that was told of last has ended.
    pub(super) fn age(&self) -> Duration {
        Duration::from_nanos(now_ns().saturating_sub(self.last.span.end_ns))
    }

    pub(super) fn span(&self) -> Span {
        self.last.span
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
        if !self.last.span.is_last {
            let weight = self.last.weight();
            self.waiting.fetch_sub(weight, Ordering::Relaxed);
        }
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
        self.stop.set();
        while self.told.recv().is_ok() {}
        let _ = self.join();
    }
}
