//! Chooses the files to delete when a recording is too large.
//!
//! Files near a slow period are kept longest, and may take half of the recording's bytes.

/// A sealed file of I/Os.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The file's place in the order in which the files were sealed.
    pub(crate) number: u64,
    /// When the file's first I/O ended, in nanoseconds since 1970.
    pub(crate) from_ns: u64,
    /// When the file's last I/O ended, in nanoseconds since 1970.
    pub(crate) to_ns: u64,
    /// Whether the file has slow I/Os.
    pub(crate) is_slow: bool,
    pub(crate) bytes: u64,
}

#[cfg(test)]
impl Segment {
    /// A file without slow I/Os, of one byte.
    pub(crate) fn usual(number: u64, from_ns: u64, to_ns: u64) -> Segment {
        Segment {
            number,
            from_ns,
            to_ns,
            is_slow: false,
            bytes: 1,
        }
    }
}

/// A file is near a slow file if its I/Os ended at most this long before or after those of the slow file.
const AROUND_NS: u64 = 60_000_000_000;

/// The numbers of the files to delete so that at most `keep` bytes remain. `files` has the files in the order
/// in which they were sealed.
///
/// The next file to delete is the oldest file that is not near a slow file. But if there is none, or if the
/// files near slow files take more than half of `keep`, it is the oldest file of all. Files of the last 60
/// seconds count as near a slow file, because the next file may be slow.
pub(crate) fn victims(files: &[Segment], keep: u64) -> Vec<u64> {
    let mut near = near_slow(files);
    let mut bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let is_near = files.iter().zip(&near).filter(|(_, is_near)| **is_near);
    let mut near_bytes: u64 = is_near.map(|(file, _)| file.bytes).sum();
    let mut is_left = vec![true; files.len()];
    let mut victims = Vec::new();
    while bytes > keep {
        let spares_near = near_bytes <= keep / 2;
        let oldest =
            |spares: bool| (0..files.len()).find(|at| is_left[*at] && !(spares && near[*at]));
        let Some(at) = oldest(spares_near).or_else(|| oldest(false)) else {
            break;
        };
        is_left[at] = false;
        bytes -= files[at].bytes;
        if std::mem::take(&mut near[at]) {
            near_bytes -= files[at].bytes;
        }
        victims.push(files[at].number);
    }
    victims
}

/// For each file, whether it is near a slow file or in the last 60 seconds.
fn near_slow(files: &[Segment]) -> Vec<bool> {
    let newest = files
        .iter()
        .map(|file| file.to_ns)
        .max()
        .unwrap_or_default();
    let slow = files.iter().filter(|file| file.is_slow);
    let mut around: Vec<(u64, u64)> = slow
        .map(|file| {
            let from = file.from_ns.saturating_sub(AROUND_NS);
            (from, file.to_ns.saturating_add(AROUND_NS))
        })
        .collect();
    around.sort_unstable();
    // The end of each range becomes the latest of its own end and the ends of all earlier ranges.
    let mut last = 0;
    for (_, to) in &mut around {
        last = last.max(*to);
        *to = last;
    }
    let is_near = |file: &Segment| {
        let begun = around.partition_point(|(from, _)| *from <= file.to_ns);
        let last = around[..begun].last();
        file.to_ns.saturating_add(AROUND_NS) >= newest
            || last.is_some_and(|(_, to)| *to >= file.from_ns)
    };
    files.iter().map(is_near).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn any_files() -> impl Strategy<Value = Vec<Segment>> {
        let file = (0..40_u64, prop::bool::weighted(0.1), 1..1_000_u64);
        prop::collection::vec(file, 0..60).prop_map(|files| {
            let mut to_ns = 0;
            let made = files
                .into_iter()
                .enumerate()
                .map(|(number, (seconds, is_slow, bytes))| {
                    let from_ns = to_ns;
                    to_ns += seconds * SECOND_NS;
                    Segment {
                        number: number as u64,
                        from_ns,
                        to_ns,
                        is_slow,
                        bytes,
                    }
                });
            made.collect()
        })
    }

    /// Whether a file is near a slow file. This naive version compares the file with each other file, in
    /// whole seconds.
    fn is_spared(file: &Segment, files: &[Segment]) -> bool {
        let seconds = |file: &Segment| (file.from_ns / SECOND_NS, file.to_ns / SECOND_NS);
        let (from, to) = seconds(file);
        let is_close =
            |(other_from, other_to): (u64, u64)| other_from <= to + 60 && from <= other_to + 60;
        let end = files.iter().map(|file| seconds(file).1).max().unwrap_or(0);
        to + 60 >= end
            || files
                .iter()
                .any(|other| other.is_slow && is_close(seconds(other)))
    }

    proptest! {
        #[test]
        fn the_oldest_boring_file_goes_until_the_rest_fits(
            files in any_files(),
            keep in 0..30_000_u64,
        ) {
            let mut left: Vec<&Segment> = files.iter().collect();
            let mut gone = Vec::new();
            let sum = |files: &[&Segment]| files.iter().map(|file| file.bytes).sum::<u64>();
            while sum(&left) > keep {
                let spared: Vec<&Segment> =
                    left.iter().copied().filter(|file| is_spared(file, &files)).collect();
                let boring = left.iter().position(|file| !spared.contains(file));
                let at = boring.filter(|_| sum(&spared) <= keep / 2).unwrap_or(0);
                gone.push(left.remove(at).number);
            }
            prop_assert_eq!(victims(&files, keep), gone);
        }
    }

    #[test]
    fn a_slow_minute_outlives_a_quiet_day() {
        let file = |number: u64, is_slow| Segment {
            number,
            from_ns: number * 10 * SECOND_NS,
            to_ns: (number + 1) * 10 * SECOND_NS,
            is_slow,
            bytes: 100,
        };
        let files: Vec<_> = (0..1_000)
            .map(|number| file(number, number == 100))
            .collect();
        let gone = victims(&files, 10_000);
        let left: Vec<u64> = (0..1_000).filter(|number| !gone.contains(number)).collect();
        let near: Vec<u64> = (93..=107).collect();
        assert_eq!((left.len(), &left[..15]), (100, &near[..]));
        assert_eq!(left[15], 915);
    }
}
