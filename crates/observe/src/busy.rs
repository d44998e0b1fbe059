//! How long a device was busy and how many I/Os it had in flight, computed only from the times of its I/Os.

/// The intervals of a period, with the time that a device was busy in each.
#[derive(Clone, Debug)]
pub struct Busy {
    start_ns: u64,
    step_ns: u64,
    end_ns: u64,
    /// For each interval, the busy time, and the integral over time of the number of I/Os in flight. Both are
    /// in nanoseconds.
    intervals: Vec<(u64, u128)>,
    /// The stretches of time in which any I/O was in flight: separate, and in order.
    covered: Vec<(u64, u64)>,
}

impl Busy {
    /// Divides the period from `start_ns` to `end_ns` into intervals of `step_ns`; the last may be shorter.
    pub fn new(start_ns: u64, end_ns: u64, step_ns: u64) -> Busy {
        let step_ns = step_ns.clamp(1, end_ns.saturating_sub(start_ns).max(1));
        let count = end_ns.saturating_sub(start_ns).div_ceil(step_ns);
        Busy {
            start_ns,
            step_ns,
            end_ns,
            intervals: vec![(0, 0); usize::try_from(count).unwrap_or(0)],
            covered: Vec::new(),
        }
    }

    /// Adds an I/O that was in flight from `from_ns` to `to_ns`.
    pub fn add(&mut self, from_ns: u64, to_ns: u64) {
        self.each_interval(from_ns, to_ns, |(_, depth_ns), ns| {
            *depth_ns += u128::from(ns);
        });
        self.cover(from_ns, to_ns);
    }

    /// Like [`Busy::add`], but adds only to the busy time. If the caller adds the same I/O with both
    /// functions, its busy time is counted once.
    pub fn cover(&mut self, from_ns: u64, to_ns: u64) {
        let (from_ns, to_ns) = self.within(from_ns, to_ns);
        if from_ns >= to_ns {
            return;
        }
        let first = self
            .covered
            .partition_point(|(_, end_ns)| *end_ns < from_ns);
        let (mut next, mut new_ns) = (first, from_ns);
        let mut whole = (from_ns, to_ns);
        while let Some(&(begun_ns, end_ns)) = self.covered.get(next) {
            if begun_ns > to_ns {
                break;
            }
            self.add_busy(new_ns, begun_ns);
            new_ns = new_ns.max(end_ns);
            whole = (whole.0.min(begun_ns), whole.1.max(end_ns));
            next += 1;
        }
        self.add_busy(new_ns, to_ns);
        self.covered.splice(first..next, [whole]);
        if self.covered.len() > COVERED_MAX {
            // Merge the older half of the stretches into one, so that the gaps between them count as covered.
            // I/Os come in the order in which they ended, so a later I/O hardly ever reaches back into such a
            // gap. If one does, a little busy time is missed.
            let oldest = self.covered.len() / 2;
            let until_ns = self.covered[oldest].1;
            self.covered.splice(..=oldest, [(self.start_ns, until_ns)]);
        }
    }

    /// How long the device was busy in the interval that begins at `start_ns`, and the integral over this
    /// interval of the number of I/Os in flight. Both are in nanoseconds.
    pub fn interval(&self, start_ns: u64) -> (u64, u128) {
        let at = start_ns.saturating_sub(self.start_ns) / self.step_ns;
        let interval = usize::try_from(at)
            .ok()
            .and_then(|at| self.intervals.get(at));
        interval.copied().unwrap_or_default()
    }

    fn add_busy(&mut self, from_ns: u64, to_ns: u64) {
        self.each_interval(from_ns, to_ns, |(busy_ns, _), ns| {
            *busy_ns += ns;
        });
    }

    /// Calls a function for each interval that a stretch of time overlaps, with the length of the overlap.
    fn each_interval(
        &mut self,
        from_ns: u64,
        to_ns: u64,
        mut of: impl FnMut(&mut (u64, u128), u64),
    ) {
        let (mut from_ns, to_ns) = self.within(from_ns, to_ns);
        while from_ns < to_ns {
            let at = (from_ns - self.start_ns) / self.step_ns;
            let end_ns = (self.start_ns + (at + 1).saturating_mul(self.step_ns)).min(to_ns);
            if let Some(interval) = self.intervals.get_mut(at as usize) {
                of(interval, end_ns - from_ns);
            }
            from_ns = end_ns;
        }
    }

    fn within(&self, from_ns: u64, to_ns: u64) -> (u64, u64) {
        (from_ns.max(self.start_ns), to_ns.min(self.end_ns))
    }
}

/// At most this many stretches of time are kept separate. They take 16 MiB.
const COVERED_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
            #[test]
            fn it_counts_each_moment_as_a_list_does(
                ios in prop::collection::vec((0..90_u64, 0..30_u64, any::<bool>()), 0..20),
                start_ns in 0..20_u64,
                length_ns in 1..60_u64,
                step_ns in 1..70_u64,
            ) {
                let end_ns = start_ns + length_ns;
                let mut busy = Busy::new(start_ns, end_ns, step_ns);
                for (from_ns, length_ns, is_over) in &ios {
                    if *is_over {
    busy.add(*from_ns, from_ns + length_ns);
    } else {
    busy.cover(*from_ns, from_ns + length_ns);
    }
                }
                let step_ns = step_ns.min(length_ns);
                for from_ns in (start_ns..end_ns).step_by(step_ns as usize) {
                    let moments = from_ns..(from_ns + step_ns).min(end_ns);
                    let at = |moment: u64| ios.iter().filter(move |(from, length, _)| (*from..from + length).contains(&moment));
                    let busy_ns = moments.clone().filter(|moment| at(*moment).count() > 0).count() as u64;
                    let depth_ns: usize = moments.map(|moment| at(moment).filter(|(.., is_over)| *is_over).count()).sum();
                    prop_assert_eq!(busy.interval(from_ns), (busy_ns, depth_ns as u128));
                }
            }
        }
}
