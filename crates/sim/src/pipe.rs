//! A pipe with a rate, through which requests pass one after another. It models a disk's bus or a client's
//! link.

use dashpot_engine::Instant;

/// A pipe, empty at first.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    /// Bytes per second.
    rate: u64,
    /// The time at which all booked bytes will have passed.
    free: Instant,
    /// The remainder of the last division by `rate`, in bytes × ns/s. The next booking adds it to its own
    /// bytes, so a busy pipe loses nothing to rounding.
    rest: u64,
}

impl Pipe {
    pub(crate) fn new(rate: u64) -> Pipe {
        Pipe {
            rate: rate.max(1),
            free: Instant::ZERO,
            rest: 0,
        }
    }

    /// Books bytes behind all earlier ones, and returns when the last of them will have passed.
    pub(crate) fn pass(&mut self, now: Instant, bytes: u32) -> Instant {
        if now > self.free {
            (self.free, self.rest) = (now, 0);
        }
        // This cannot overflow: the remainder is below the rate, and bytes × 10^9 is below 2^62.
        let work = u128::from(bytes) * NANOS + u128::from(self.rest);
        let (nanos, rest) = match u64::try_from(work) {
            Ok(work) => (work / self.rate, work % self.rate),
            Err(_) => {
                let rate = u128::from(self.rate);
                ((work / rate) as u64, (work % rate) as u64)
            }
        };
        self.rest = rest;
        self.free = Instant::from_nanos(self.free.as_nanos().saturating_add(nanos));
        self.free
    }
}

const NANOS: u128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::Pipe;
    use dashpot_engine::Instant;

    #[test]
    fn a_busy_pipe_keeps_its_rate_to_the_byte() {
        let mut pipe = Pipe::new(3);
        let passed: Vec<u64> = (0..6)
            .map(|_| pipe.pass(Instant::ZERO, 1).as_nanos())
            .collect();
        assert_eq!(passed[2], 1_000_000_000);
        assert_eq!(passed[5], 2_000_000_000);
        assert_eq!(passed[0], 333_333_333);
    }

    #[test]
    fn an_idle_pipe_begins_when_it_is_asked() {
        let mut pipe = Pipe::new(1_000_000_000);
        assert_eq!(pipe.pass(Instant::from_nanos(5), 10).as_nanos(), 15);
        assert_eq!(pipe.pass(Instant::from_nanos(10), 0).as_nanos(), 15);
        assert_eq!(pipe.pass(Instant::from_nanos(100), 1).as_nanos(), 101);
    }
}
