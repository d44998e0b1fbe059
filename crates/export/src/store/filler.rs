//! A thread that makes the kernel provide huge pages before a shard uses them.
//!
//! The first touch of a huge page takes the kernel up to some milliseconds, because it zeroes 2 MiB, and under
//! virtualisation the host may have to provide them, too. No step of a shard may take that long.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::Builder;

use dashpot_sys::Provision;

/// The groups of chunks of one store whose memory has come.
#[derive(Debug, Default)]
pub(super) struct Ready {
    has_some: AtomicBool,
    groups: Mutex<Vec<u32>>,
}

struct Job {
    provision: Provision,
    group: u32,
    ready: Arc<Ready>,
}

static FILLER: OnceLock<Option<Sender<Job>>> = OnceLock::new();

impl Ready {
    /// Takes the groups that have come since the last call.
    pub(super) fn take(&self) -> Vec<u32> {
        if !self.has_some.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        std::mem::take(&mut *self.groups.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, group: u32) {
        let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        groups.push(group);
        drop(groups);
        self.has_some.store(true, Ordering::Release);
    }
}

impl Job {
    fn run(self) {
        // If the kernel refuses, the memory comes when it is first used.
        let _ = self.provision.provide();
        self.ready.put(self.group);
    }
}

/// Makes the thread provide the memory of a group.
pub(super) fn provide(provision: Provision, group: u32, ready: &Arc<Ready>) {
    let ready = Arc::clone(ready);
    let filler = FILLER.get_or_init(start).as_ref();
    let job = Job {
        provision,
        group,
        ready,
    };
    let unsent = match filler {
        Some(filler) => filler.send(job).err().map(|error| error.0),
        None => Some(job),
    };
    if let Some(job) = unsent {
        job.ready.put(job.group);
    }
}

/// Starts the thread. `None` if the system allows no more threads.
fn start() -> Option<Sender<Job>> {
    let (sender, jobs) = channel::<Job>();
    let work = move || jobs.into_iter().for_each(Job::run);
    let thread = Builder::new().name("dashpot-memory".to_owned()).spawn(work);
    thread.ok().map(|_| sender)
}
