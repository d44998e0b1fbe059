//! Whether dashpot can receive the system calls of a program here, for `path:` disks.

use std::thread::Builder;

use dashpot_sys::seccomp::{Listener, NotInstalled};

use super::attach::Missing;

/// Tries to install a filter. The filter picks no calls, so nothing else changes.
pub(super) fn calls_work() -> Result<(), Missing> {
    // The kernel binds a filter and the loss of privileges to a thread. Both end with this thread.
    let thread = Builder::new().spawn(|| Listener::install(&[]).map(drop));
    let thread = thread.map_err(|error| Missing::new(error.to_string(), "end other programs"))?;
    match thread.join() {
        Ok(installed) => installed.map_err(why_not),
        Err(_) => Err(Missing::new("the attempt failed", "run it again")),
    }
}

/// Why there is no filter, and the remedy.
pub(crate) fn why_not(error: NotInstalled) -> Missing {
    let (why, change) = match error {
        NotInstalled::HasListener => (
            "a program that receives such calls already runs around dashpot (another dashpot, or a \
             container's agent)",
            "start dashpot outside of it",
        ),
        NotInstalled::Missing => (
            "the kernel has no seccomp user notification, or a sandbox hides it",
            "use Linux 5.5 or later, or allow seccomp(2) in the sandbox's profile",
        ),
        NotInstalled::Forbidden => (
            "a sandbox forbids the filter",
            "allow seccomp(2) in the sandbox's profile",
        ),
        NotInstalled::UnknownMachine => (
            "dashpot knows the numbers of system calls for x86-64 and ARM64 alone",
            "use such a machine",
        ),
        NotInstalled::Failed(error) => {
            return Missing::new(
                format!("the kernel refuses the filter ({error})"),
                "seccomp(2) has the meaning of this error",
            );
        }
    };
    Missing::new(why, change)
}
