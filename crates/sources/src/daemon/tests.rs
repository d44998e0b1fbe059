//! Intervals between two snapshots of a disk.

use dashpot_api::{DepthTime, DiskLatency, LatencyHistogram, OpLatency, Wide};
use dashpot_engine::histogram::Histogram;

use super::{between, since_start};

/// A disk that has finished `reads` reads of 4 KiB, one at a time, in 10 ms each.
fn look(since_ns: u64, reads: u64) -> DiskLatency {
    let latencies = Histogram::of(10_000_000, reads);
    let sent = LatencyHistogram::of(&latencies);
    let read = OpLatency {
        by: None,
        op: "read".to_owned(),
        completed: reads,
        failed: 0,
        bytes: reads * 4_096,
        total: sent.clone(),
        disk: sent,
        lateness: LatencyHistogram::default(),
        store: None,
    };
    DiskLatency {
        disk: "d".to_owned(),
        layout: dashpot_engine::histogram::LAYOUT.to_owned(),
        since_ns,
        at_ns: since_ns + reads * 10_000_000,
        busy_ns: reads * 10_000_000,
        depth_time_ns: Wide(u128::from(reads) * 10_000_000),
        depth_times: vec![DepthTime {
            depth: 1,
            time_ns: reads * 10_000_000,
        }],
        suspended_ns: 0,
        shard_stopped_ns: 0,
        in_flight: 0,
        oldest: None,
        dropped: 0,
        unheld: None,
        interrupted: None,
        ops: vec![read],
    }
}

#[test]
fn an_interval_is_the_difference_of_two_looks() {
    let interval = between(&look(7, 30), &look(7, 80)).unwrap();
    let read = &interval.ops[0].counts;
    let disk = read.disk.as_ref().expect("latencies");
    assert_eq!((read.completed, read.bytes), (50, 50 * 4_096));
    assert_eq!((disk.count(), disk.sum()), (50, 500_000_000));
    assert_eq!(
        (interval.elapsed, interval.busy.as_millis()),
        (interval.busy, 500)
    );
    assert_eq!(interval.depth_time_ns, 500_000_000);
    let depths = interval.depths.unwrap().summary();
    assert_eq!((depths.most, depths.depth_time), (1, 500_000_000));
    let whole = since_start(&look(7, 80)).unwrap();
    assert_eq!(
        (whole.ops[0].counts.completed, whole.elapsed.as_millis()),
        (80, 800)
    );
}

fn by(name: &str, reads: u64) -> OpLatency {
    let mut op = look(0, reads).ops.remove(0);
    op.by = Some(name.to_owned());
    op
}

fn broken_down(ops: Vec<OpLatency>) -> DiskLatency {
    DiskLatency { ops, ..look(7, 0) }
}

fn counts(earlier: Vec<OpLatency>, later: Vec<OpLatency>) -> Vec<(String, u64, u64)> {
    let interval = between(&broken_down(earlier), &broken_down(later)).unwrap();
    let counts = interval.ops.into_iter();
    counts
        .map(|op| {
            (
                op.by.unwrap(),
                op.counts.completed,
                op.counts.disk.map_or(0, |disk| disk.count()),
            )
        })
        .collect()
}

fn expected(counts: &[(&str, u64)]) -> Vec<(String, u64, u64)> {
    let counts = counts.iter();
    counts
        .map(|(name, count)| ((*name).to_owned(), *count, *count))
        .collect()
}

#[test]
fn sizes_are_named_as_everywhere() {
    let names = ["0", "512", "4K", "1M"].map(super::size_range);
    assert_eq!(names, ["0", "512-1K", "4K-8K", "1M-2M"]);
}

#[test]
fn parts_are_found_by_their_names() {
    let counts = counts(vec![by("a", 3)], vec![by("b", 2), by("a", 7)]);
    assert_eq!(counts, expected(&[("b", 2), ("a", 4)]));
}

#[test]
fn who_has_been_added_to_the_others_is_not_counted_again() {
    let earlier = vec![by("a", 3), by("b", 5), by("other", 10)];
    let later = vec![by("b", 1), by("other", 20)];
    // `a` and the first `b`, with 18 I/Os together, are in `other` now. The second `b` is a new
    // client.
    assert_eq!(counts(earlier, later), expected(&[("b", 1), ("other", 2)]));
}

#[test]
fn two_daemons_make_no_interval() {
    assert!(between(&look(7, 30), &look(8, 80)).is_err());
}
