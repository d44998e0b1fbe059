//! Whether dashpot can receive the system calls of a program here, for `path:` disks.

use std::thread::Builder;

use dashpot_sys::seccomp::{Listener, NotInstalled};
use rustix::thread::{CapabilitySet, capabilities};

use crate::drivers::Missing;

/// Tries to install a filter. The filter matches no calls, so it has no effect. Returns whether the kernel can
/// make a signal wait for the end of a held call.
pub(crate) fn calls_work() -> Result<bool, Missing> {
    // A filter, and the loss of privileges that it requires, belong to one thread, so both end with this
    // thread.
    let thread = Builder::new().spawn(|| Listener::install(&[]).map(|it| it.holds_signals()));
    let thread = thread.map_err(|error| Missing::new(error.to_string(), "end other programs"))?;
    match thread.join() {
        Ok(installed) => installed.map_err(why_not),
        Err(_) => Err(Missing::new("the attempt failed", "run it again")),
    }
}

/// The warnings for users of path disks. `signals_wait` is the kernel's ability, if calls can be held at all.
pub(crate) fn warnings(signals_wait: Option<bool>) -> Option<String> {
    let signals = (signals_wait == Some(false)).then_some(SIGNALS_DO_NOT_WAIT);
    let found: Vec<&str> = signals.into_iter().chain(memory_warning()).collect();
    (!found.is_empty()).then(|| found.join(". "))
}

/// A warning if Yama, a part of the kernel, keeps dashpot from reading the memory of a program.
fn memory_warning() -> Option<&'static str> {
    let scope = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    let is_root = rustix::process::geteuid().is_root();
    warning_of(scope.trim(), may_trace(), is_root)
}

fn may_trace() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_PTRACE))
}

fn warning_of(scope: &str, may_trace: bool, is_root: bool) -> Option<&'static str> {
    match (scope, may_trace) {
        ("3", _) | ("2", false) => Some(UNREADABLE),
        ("1", false) if is_root => Some(UNREADABLE_OF_OTHERS),
        _ => None,
    }
}

/// Why the kernel has not installed the filter, and the remedy.
pub fn why_not(error: NotInstalled) -> Missing {
    let (why, change) = match error {
        NotInstalled::HasListener => (
            "dashpot itself runs under a program that receives such calls (another dashpot, or a \
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
                "seccomp(2) explains this error",
            );
        }
    };
    Missing::new(why, change)
}

const SIGNALS_DO_NOT_WAIT: &str = "Beware: before Linux 5.19, a signal with a handler ends a held call, which begins \
     again or fails with EINTR; dashpot cannot count all such calls";
const UNREADABLE: &str = "Beware: kernel.yama.ptrace_scope keeps dashpot from reading the names of files in \
     calls such as open, and the lists of buffers in writev and its kin: such calls go on unheld, and are \
     counted. With 1, or with CAP_SYS_PTRACE and 2, they are held. types=sync needs none of this";
const UNREADABLE_OF_OTHERS: &str = "Beware: kernel.yama.ptrace_scope is 1. If a program drops from root, \
     dashpot cannot read the names of files in calls such as open, and the lists of buffers in writev and its \
     kin, without CAP_SYS_PTRACE: such calls go on unheld, and are counted";

#[cfg(test)]
mod tests {
    use super::{UNREADABLE, UNREADABLE_OF_OTHERS, warning_of, warnings};

    #[test]
    fn a_kernel_that_cannot_make_signals_wait_is_a_limit() {
        let warns =
            |signals_wait| warnings(signals_wait).is_some_and(|it| it.contains("Linux 5.19"));
        assert!(warns(Some(false)) && !warns(Some(true)) && !warns(None));
    }

    #[test]
    fn yama_is_a_limit_where_it_keeps_dashpot_from_memory() {
        for (scope, may_trace, is_root, warning) in [
            ("0", false, true, None),
            ("1", false, false, None),
            ("1", false, true, Some(UNREADABLE_OF_OTHERS)),
            ("1", true, true, None),
            ("2", false, false, Some(UNREADABLE)),
            ("2", true, true, None),
            ("3", true, true, Some(UNREADABLE)),
        ] {
            assert_eq!(warning_of(scope, may_trace, is_root), warning, "{scope}");
        }
    }
}
