//! Watches calls that sync, through a private instance of tracefs.

use super::pairing::{Caller, Calls};
use super::storage::file_of;
use super::{FileId, Sync, SyncEvent, SyncWhat};
use crate::error::TraceError;
use crate::record::Entry;
use crate::tasks::Tasks;
use crate::tracefs::instance::Instance;
use crate::tracefs::ring::{Item, Ring};
use crate::tracefs::setup::{
    SWITCH, buffer_kib, enable_syncs, enable_tasks, layout, now_ns, prepare,
};
use crate::tracefs::tasks::Facts;
use crate::tracer::Progress;

/// A watch on all calls of this host that sync. Dropping it removes everything that it has set up in the
/// kernel. While the watch exists, every system call on the host takes longer, because the kernel checks
/// whether the call syncs.
#[derive(Debug)]
pub struct SyncTracer {
    // The ring is dropped before the instance, which cannot be removed while its files are open.
    ring: Ring,
    instance: Instance,
    calls: Calls,
    tasks: Tasks,
    /// `calls.unmatched` at the last reading.
    unmatched: u64,
    /// `calls.dropped` at the last reading.
    dropped: u64,
    tended_ns: u64,
}

/// The time between two checks for changes that no event reports.
const TEND_NS: u64 = 1_000_000_000;

impl SyncTracer {
    /// Begins to watch.
    pub fn start() -> Result<SyncTracer, TraceError> {
        let instance = Instance::new()?;
        prepare(&instance)?;
        let cpus = instance.list("per_cpu")?;
        instance.write("buffer_size_kb", &buffer_kib(cpus.len()).to_string())?;
        let mut decoders = Vec::new();
        enable_syncs(&instance, &mut decoders)?;
        let plan = enable_tasks(&instance, Facts::of(true, true), &mut decoders)?;
        let ring = Ring::open(&cpus, layout(&instance)?, decoders)?;
        instance.write(SWITCH, "1")?;
        Ok(SyncTracer {
            ring,
            instance,
            calls: Calls::default(),
            tasks: Tasks::begin(plan),
            unmatched: 0,
            dropped: 0,
            tended_ns: now_ns(),
        })
    }

    /// Reads the events since the last reading, up to `end_ns`, and passes each call that has ended to
    /// `give`, in the order in which the calls ended. The function does not wait, so its caller should call
    /// it often, such as 20 times a second. This function also looks
    /// each call's file up by its descriptor, for file systems without events.
    pub fn read(
        &mut self,
        end_ns: u64,
        mut give: impl FnMut(&Sync),
    ) -> Result<Progress, TraceError> {
        let until_ns = now_ns().min(end_ns);
        let (calls, tasks) = (&mut self.calls, &mut self.tasks);
        self.ring.drain(until_ns, |item| match item {
            Item::Entry(Entry::Sync(event)) => {
                let ended = calls.take(event, || caller(event, tasks));
                ended.iter().for_each(&mut give);
            }
            Item::Entry(Entry::Task(_, event)) => tasks.take(event),
            Item::Entry(Entry::Block(_)) => {}
            Item::Lost(_) => {
                calls.lost();
                tasks.lost();
            }
        })?;
        self.tasks.caught_up();
        if until_ns >= self.tended_ns + TEND_NS {
            self.tended_ns = until_ns;
            self.instance.check_on(SWITCH)?;
            self.tasks.tend();
        }
        let (unmatched, dropped) = (self.calls.unmatched, self.calls.dropped);
        Ok(Progress {
            until_ns,
            lost: self.ring.lost()?,
            unmatched: unmatched - std::mem::replace(&mut self.unmatched, unmatched),
            dropped: dropped - std::mem::replace(&mut self.dropped, dropped),
        })
    }

    /// The calls in flight at the last reading.
    pub fn in_flight(&self) -> impl Iterator<Item = &Sync> {
        self.calls.in_flight()
    }
}

fn caller(event: &SyncEvent, tasks: &mut Tasks) -> Caller {
    let file = match event.what {
        SyncWhat::Begin { fd: Some(fd), .. } => {
            file_of(event.pid, fd).map(|(storage, inode)| FileId {
                storage,
                inode: Some(inode),
            })
        }
        _ => None,
    };
    let thread = tasks.name(event.pid);
    Caller {
        owner: tasks.owner(event.pid, thread),
        thread,
        file,
    }
}
