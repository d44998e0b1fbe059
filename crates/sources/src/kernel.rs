//! Watches the kernel's disks in a thread of its own, because printing can block on a terminal, a pipe or a
//! disk, and the kernel overwrites events that are not read in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::anyhow;
use dashpot_observe::{Question, Schedule, Seen};
use dashpot_probe::Device;

use crate::named::Named;
use crate::priority;
use crate::reader::{Reader, Tell, Watched, weight};
use crate::signals::{Stop, now_ns};
use crate::source::Source;
use crate::wall::unix_ns_before;

/// A watch of some of the kernel's devices.
pub struct KernelSource {
    stop: Stop,
    told: Receiver<Watched>,
    /// About how much memory the intervals that wait to be printed take: the sum of their weights.
    waiting: Arc<AtomicUsize>,
    reader: Option<JoinHandle<()>>,
}

impl KernelSource {
    /// Begins to watch these devices and, if the user has named none, each disk that appears later.
    ///
    /// # Errors
    ///
    /// Fails if the kernel cannot be watched.
    pub fn new(
        devices: &[Device],
        named: Named,
        question: &Question,
        schedule: &Schedule,
    ) -> anyhow::Result<KernelSource> {
        // Catch signals first, so that no signal ends the program while the kernel holds something to clean
        // up.
        let stop = Stop::new()?;
        let reader = Reader::new(devices, named, question, stop.clone(), schedule)?;
        let (way, told) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let tell = Tell {
            way,
            waiting: Arc::clone(&waiting),
        };
        let reader = thread::Builder::new()
            .name("reader".to_owned())
            .spawn(move || {
                priority::run_first();
                if let Some(untold) = reader.run(&tell) {
                    // If this fails, the report has ended, and needs no more news.
                    let _ = tell.way.send(untold);
                }
            })?;
        Ok(KernelSource {
            stop,
            told,
            waiting,
            reader: Some(reader),
        })
    }

    /// Waits until the thread has cleaned up in the kernel.
    fn join(&mut self) -> anyhow::Result<()> {
        let ended = self.reader.take().map_or(Ok(()), JoinHandle::join);
        ended.map_err(|_| anyhow!("the thread that reads the kernel's events has failed"))
    }
}

impl Source for KernelSource {
    fn next(&mut self) -> anyhow::Result<Option<Seen>> {
        let Ok(told) = self.told.recv() else {
            self.join()?;
            return Ok(None);
        };
        let mut seen = told?;
        if !seen.span.is_last {
            self.waiting.fetch_sub(weight(&seen), Ordering::Relaxed);
        }
        let age = Duration::from_nanos(now_ns().saturating_sub(seen.span.end_ns));
        seen.at_ns = unix_ns_before(age);
        Ok(Some(seen))
    }
}

impl Drop for KernelSource {
    fn drop(&mut self) {
        self.stop.set();
        while self.told.recv().is_ok() {}
        let _ = self.join();
    }
}
