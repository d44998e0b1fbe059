//! How often a thread has waited.

/// How often this thread has given up its CPU by itself, because it waited for something. A thread that the
/// kernel has only made to wait for a CPU has not.
#[must_use]
pub fn voluntary_switches() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a live structure of the right type, which the kernel fills. All of its fields
    // are integers, for which zero is a value, so it may be read even if the call fails.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_nvcsw.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::voluntary_switches;

    #[test]
    fn a_wait_counts() {
        let before = voluntary_switches();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(voluntary_switches() > before);
    }
}
