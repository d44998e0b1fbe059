//! Shows the kernel's disks on a page. A thread watches the disks and remembers their last I/Os.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use dashpot_api::{Clock, Source as Described, SourceDevice, SourceKind, SourceLayer};
use dashpot_daemon::http::{IoMemory, Remembering};
use dashpot_engine::Duration;
use dashpot_export::complain;
use dashpot_observe::{Knows, Layer, Question, Schedule, Subject, Wanted};
use dashpot_sources::{Target, now_ns, unix_ns};

use super::MEMORY;

/// A watch of the kernel's disks. Dropping this value ends the watch.
pub struct KernelWatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl KernelWatch {
    /// Begins to watch a target. Returns when the watch has begun.
    pub fn start(target: Target) -> anyhow::Result<(KernelWatch, Arc<IoMemory>)> {
        let told = Remembering {
            source: described(&target),
            clock: Clock {
                now_ns: now_ns(),
                started_ns: now_ns(),
                unix_ns: unix_ns(),
            },
        };
        let memory = Arc::new(IoMemory::new(Knows::Kernel, told.clone(), MEMORY));
        let over = Arc::new(AtomicBool::new(false));
        let (begun, has_begun) = std::sync::mpsc::channel();
        let (of_thread, is_over) = (Arc::clone(&memory), Arc::clone(&over));
        let thread = std::thread::Builder::new().name("watch".to_owned());
        let thread = thread.spawn(move || {
            let watched = watch(&target, &of_thread, told, &is_over, || {
                let _ = begun.send(Ok(()));
            });
            let why = watched.as_ref().err().map(|error| format!("{error:#}"));
            of_thread.end(why);
            // If the watch had begun, `start` has returned and does not receive this message; the page says
            // why the watch has ended.
            let _ = begun.send(watched);
        })?;
        let watch = KernelWatch {
            over,
            thread: Some(thread),
        };
        has_begun.recv()??;
        Ok((watch, memory))
    }
}

impl Drop for KernelWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, it has printed its message.
            let _ = thread.join();
        }
    }
}

fn watch(
    target: &Target,
    memory: &IoMemory,
    mut told: Remembering,
    over: &AtomicBool,
    begun: impl FnOnce(),
) -> anyhow::Result<()> {
    let question = Question::of(Subject::Ios(Wanted::all(Layer::Disk)));
    let mut source = target.watch(&question, &Schedule::once(Duration::MAX))?;
    begun();
    loop {
        let before_ns = now_ns();
        let Some(seen) = source.next()? else {
            return Ok(());
        };
        for name in &seen.appeared {
            if !told
                .source
                .devices
                .iter()
                .any(|device| device.name == *name)
            {
                told.source.devices.push(of_kernel(name.clone()));
            }
        }
        for one in &seen.stacked {
            let devices = told.source.devices.iter_mut();
            let is_news =
                |device: &SourceDevice| device.name == one.device && device.over != one.over;
            for device in devices.filter(|device| is_news(device)) {
                complain(format_args!("dashpot: not in the page's sums: {one}"));
                device.over.clone_from(&one.over);
            }
        }
        let (now, unix) = (now_ns(), unix_ns());
        // The kernel's events arrive late, from the buffers of several CPUs, so the page's clock runs behind.
        told.clock.now_ns = before_ns.saturating_sub(LATE_NS).max(told.clock.started_ns);
        told.clock.unix_ns = unix.saturating_sub(now.saturating_sub(told.clock.now_ns));
        memory.add(seen.ios, seen.lost, told.clone());
        if over.load(Ordering::Relaxed) || seen.span.is_last {
            return Ok(());
        }
    }
}

fn of_kernel(name: String) -> SourceDevice {
    SourceDevice {
        layer: SourceLayer::Disk,
        name,
        over: Vec::new(),
    }
}

fn described(target: &Target) -> Described {
    let names = target.names(Layer::Disk).into_iter();
    let device = of_kernel;
    Described {
        kind: SourceKind::Kernel,
        name: String::new(),
        words: "-k".to_owned(),
        devices: names.map(device).collect(),
        gaps: Vec::new(),
        ended_ns: None,
        trouble: None,
    }
}

/// The longest time from the end of an I/O until its events reach the page's memory.
const LATE_NS: u64 = 150_000_000;
