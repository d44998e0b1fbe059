//! The thread that reads the kernel's events.

use dashpot_probe::{Options, TraceError, Tracer};
use rustix::process::setpriority_process;

/// Before what has none: the kernel overwrites what is not read in time, and a host is watched when
/// it is busy. A reader that is never kept waiting long takes no more time than another.
const NICE: i32 = -10;

/// Begins to watch, to be read by this thread.
pub(super) fn start(options: &Options) -> Result<Tracer, TraceError> {
    let tracer = Tracer::start(options)?;
    // On Linux this is the thread's own. Who may trace but not do this reads as others do.
    let _ = setpriority_process(None, NICE);
    Ok(tracer)
}
