//! The priority of threads that read the kernel's events.

use rustix::process::setpriority_process;

/// Before what has none: the kernel overwrites what is not read in time, and a host is watched when
/// it is busy. A reader that is never kept waiting long takes no more time than another.
const NICE: i32 = -10;

/// Lets this thread run before others. Who may watch but not do this reads as others do.
pub(super) fn raise() {
    // On Linux this is the thread's own, and not the process's.
    let _ = setpriority_process(None, NICE);
}
