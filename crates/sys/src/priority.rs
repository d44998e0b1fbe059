//! The scheduling of a thread that must not wait for other threads.

use std::io;

/// Makes this thread run before all threads of normal priority, whatever their nice values, cgroups and
/// sessions. The kernel still keeps a twentieth of each CPU for other threads. Threads that this thread
/// makes later have normal priority.
///
/// # Errors
/// The kernel refuses the call to users without the right to real-time priority, and to threads in cgroups
/// without a budget for real-time threads (`cpu.rt_runtime_us`).
pub fn run_before_others() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the pointer is to a live structure, which the kernel only reads; 0 stands for the calling
    // thread.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::run_before_others;

    #[test]
    fn a_thread_runs_before_others_and_its_children_do_not() {
        let policy = || {
            let thread = rustix::thread::gettid().as_raw_nonzero();
            let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
            let stat = stat.expect("the thread");
            let (_, rest) = stat.rsplit_once(") ").expect("a name");
            rest.split(' ').nth(38).expect("a policy").to_owned()
        };
        let (own, child) = std::thread::spawn(move || {
            let is_allowed = run_before_others().is_ok();
            let child = std::thread::spawn(policy).join().expect("a policy");
            (is_allowed.then(policy), child)
        })
        .join()
        .expect("policies");
        assert!(own.is_none_or(|own| own == libc::SCHED_RR.to_string()));
        assert_eq!(child, libc::SCHED_OTHER.to_string());
    }
}
