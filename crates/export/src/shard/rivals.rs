//! The rivals of a shard are the other threads of dashpot: the workers of stores, other shards, the API. While a
//! shard waits for a CPU and a rival has one, dashpot itself makes the shard wait, and not the host.

use std::fs::File;
use std::os::unix::fs::FileExt;

use dashpot_engine::{Duration, Instant};

use crate::clock;

/// Tells how much of a stop was due to the shard's rivals.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    /// The kernel's times of the thread. The inner value is `None` if this kernel does not have them.
    times: Option<Option<File>>,
    last: Reading,
    read: Instant,
}

/// Times since the thread began.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// How long the thread has waited for a CPU. `None` if this kernel does not tell.
    waited: Option<Duration>,
    /// The CPU time of the rivals.
    taken: Duration,
}

impl Reading {
    /// How much of a stop since the reading `before` was due to the rivals, at most: for that time, the thread
    /// waited for a CPU, and rivals had one. A wait for a CPU that the host has stopped is none of both.
    fn caused(self, before: Reading, stop: Duration) -> Duration {
        let waited = self.waited.zip(before.waited);
        let waited = waited.map_or(stop, |(now, before)| now - before);
        stop.min(waited).min(self.taken - before.taken)
    }
}

impl Rivals {
    /// As on a kernel that does not tell how long a thread waited for a CPU.
    #[cfg(test)]
    pub(super) fn without_times() -> Rivals {
        Rivals {
            times: Some(None),
            ..Rivals::default()
        }
    }

    /// How much of a stop that has just ended was due to the rivals, at most.
    pub(super) fn caused(&mut self, stop: Duration) -> Duration {
        let now = self.reading();
        let before = std::mem::replace(&mut self.last, now);
        now.caused(before, stop)
    }

    /// At the end of a pass, reads the times, unless the last reading is recent.
    pub(super) fn read(&mut self, now: Instant) {
        if now.since(self.read) >= READ_EVERY {
            self.read = now;
            self.last = self.reading();
        }
    }

    fn reading(&mut self) -> Reading {
        let open = || File::open("/proc/thread-self/schedstat").ok();
        let times = self.times.get_or_insert_with(open).as_ref();
        let own = clock::cpu_time();
        Reading {
            waited: times.and_then(waited),
            taken: clock::process_cpu_time() - own,
        }
    }
}

/// Reads how long the thread has waited for a CPU: the second of the numbers.
fn waited(times: &File) -> Option<Duration> {
    let mut text = [0; 80];
    let length = times.read_at(&mut text, 0).ok()?;
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let nanos = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// At the end of a pass, the times are read again if their last reading is at least this old.
const READ_EVERY: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::{Reading, Rivals};
    use dashpot_engine::Duration;
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    use std::sync::atomic::{AtomicBool, Ordering};

    fn ms(length: u64) -> Duration {
        Duration::from_millis(length)
    }

    #[test]
    fn rivals_cause_a_stop_as_far_as_the_thread_waited_and_they_had_a_cpu() {
        let before = Reading {
            waited: Some(ms(1_000)),
            taken: ms(5_000),
        };
        for (waited, taken, caused) in [
            (Some(1_020), 5_020, 10), // They had the CPU all the time.
            (Some(1_004), 5_020, 4),  // The CPU itself was stopped.
            (Some(1_000), 5_020, 0),
            (Some(1_020), 5_003, 3), // Other programs had the CPU.
            (Some(1_020), 5_000, 0),
            (None, 5_007, 7), // An old kernel: all of it may have been a wait.
        ] {
            let now = Reading {
                waited: waited.map(ms),
                taken: ms(taken),
            };
            assert_eq!(now.caused(before, ms(10)), ms(caused), "{now:?}");
        }
    }

    #[test]
    fn a_wait_for_the_only_cpu_that_a_rival_has_is_seen() {
        let cpus = sched_getaffinity(None).unwrap();
        let only = (0..CpuSet::MAX_CPU).find(|cpu| cpus.is_set(*cpu));
        let pin = || {
            let mut set = CpuSet::new();
            set.set(only.unwrap());
            sched_setaffinity(None, &set).unwrap();
        };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                pin();
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
            scope.spawn(|| {
                pin();
                let mut rivals = Rivals::default();
                let mut caused = rivals.caused(Duration::ZERO);
                while caused < ms(2) {
                    std::thread::yield_now();
                    caused += rivals.caused(ms(1_000));
                }
                over.store(true, Ordering::Relaxed);
            });
        });
    }
}
