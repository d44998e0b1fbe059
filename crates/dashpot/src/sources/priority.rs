//! The priority of threads that read the kernel's events.

use rustix::process::setpriority_process;

/// These threads run before others: the kernel overwrites events that are not read in time, and
/// people watch busy hosts. A reader that never waits long uses no more CPU time than another.
const NICE: i32 = -10;

/// Raises the priority of this thread. A user without that right reads at normal priority.
pub(super) fn raise() {
    // On Linux the priority belongs to the thread, not to the process.
    let _ = setpriority_process(None, NICE);
}
