//! Replays events that were recorded from a kernel, and compares the paired I/Os with what
//! `/sys/block/DEV/stat` counted during the recording.

use super::history::{disk, records};
use crate::device::Layer;
use crate::io::{Io, Owner};
use crate::options::Start;
use crate::pairing::Pairing;

/// Numbers of I/Os, as in `/sys/block/DEV/stat`.
#[derive(Debug, Default, PartialEq)]
struct Stat {
    reads: usize,
    read_sectors: u64,
    writes: usize,
    write_merges: u32,
    write_sectors: u64,
    discards: usize,
    flushes: usize,
}

impl Stat {
    fn of(finished: &[Io]) -> Stat {
        let doing = |operations: &[u8]| -> Vec<Io> {
            let does = |io: &&Io| operations.contains(&io.rwbs.operation());
            finished.iter().filter(does).cloned().collect()
        };
        let sectors = |ios: &[Io]| ios.iter().map(|io| io.bytes / 512).sum();
        // The kernel counts commands that write zeroes as writes.
        let (reads, writes) = (doing(b"R"), doing(b"WN"));
        Stat {
            reads: reads.len(),
            read_sectors: sectors(&reads),
            writes: writes.len(),
            write_merges: writes.iter().map(|io| io.merged).sum(),
            write_sectors: sectors(&writes),
            discards: doing(b"D").len(),
            flushes: doing(b"F").len(),
        }
    }
}

/// The I/Os that a trace finishes. No I/O may remain in flight.
fn replay(text: &str, layer: Layer) -> Vec<Io> {
    let records = records(text);
    let mut pairing = Pairing::new(&[disk(records[0].device, layer)], Start::Queue);
    let mut finished = Vec::new();
    for record in &records {
        finished.extend(pairing.take(record, Owner::default()));
    }
    assert_eq!((pairing.unmatched(), pairing.dropped()), (0, 0));
    assert_eq!(pairing.in_flight().count(), 0);
    for io in &finished {
        assert!(
            io.queued_ns
                .is_none_or(|queued_ns| queued_ns <= io.issued_ns)
        );
        assert!(io.issued_ns <= io.completed_ns);
        assert!(io.queued_ns.is_some() || io.rwbs.bytes() == b"FF", "{io:?}");
    }
    finished
}

#[test]
fn large_ios_are_counted_as_the_kernel_splits_them() {
    let finished = replay(include_str!("traces/split.trace"), Layer::Request);
    let stat = Stat {
        reads: 8,
        read_sectors: 8192,
        writes: 8,
        write_sectors: 8192,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
    assert!(finished.iter().all(|io| io.bytes == 512 << 10));
}

/// The kernel counted 9 writes. Of these, 5 are the empty requests of the 5 calls of fsync, which waited for
/// the flush. The pairing must not count these requests.
#[test]
fn flushes_are_counted_apart_from_what_they_follow() {
    let finished = replay(include_str!("traces/flush.trace"), Layer::Request);
    let stat = Stat {
        writes: 9 - 5,
        write_merges: 63,
        write_sectors: 512 + 24,
        flushes: 8,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
}

#[test]
fn discards_and_refused_zeroes_are_counted() {
    let finished = replay(include_str!("traces/discard.trace"), Layer::Request);
    let stat = Stat {
        reads: 96,
        read_sectors: 4176,
        writes: 17,
        write_sectors: 32768,
        discards: 1,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
    let errors: Vec<_> = finished.iter().filter(|io| io.error != 0).collect();
    assert_eq!(errors.len(), 1);
    assert_eq!((errors[0].error, errors[0].rwbs.operation()), (95, b'N'));
}

#[test]
fn a_scheduler_merges_bios_and_requests() {
    let finished = replay(include_str!("traces/merge.trace"), Layer::Request);
    let stat = Stat {
        writes: 32,
        write_merges: 32,
        write_sectors: 512,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
}

#[test]
fn bios_join_the_front_of_a_request() {
    let finished = replay(include_str!("traces/reverse.trace"), Layer::Request);
    let stat = Stat {
        writes: 3,
        write_merges: 29,
        write_sectors: 32 * 8,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
}

/// The time from queueing to issue must include the wait for a tag.
#[test]
fn parts_of_bios_wait_for_tags() {
    let finished = replay(include_str!("traces/tags.trace"), Layer::Request);
    let stat = Stat {
        writes: 32,
        write_sectors: 4096,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
    let waited = |io: &Io| io.issued_ns - io.queued_ns.unwrap_or(io.issued_ns);
    assert_eq!(finished.iter().map(waited).max(), Some(23_352_000));
}

#[test]
fn what_was_refused_for_want_of_a_tag_is_queued_anew() {
    let finished = replay(include_str!("traces/nowait.trace"), Layer::Request);
    let stat = Stat {
        reads: 16,
        read_sectors: 512,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
}

#[test]
fn failed_reads_have_their_errno() {
    let finished = replay(include_str!("traces/error.trace"), Layer::Request);
    let beyond = finished.iter().filter(|io| io.sector == 12800);
    assert_eq!(beyond.map(|io| io.error).collect::<Vec<_>>(), [5, 5, 5]);
}

/// The pairing must count as zram does, which counts neither the discard nor the command that writes zeroes.
#[test]
fn bios_are_counted_as_zram_does() {
    let finished = replay(include_str!("traces/zram.trace"), Layer::Bio);
    let writes = finished.iter().filter(|io| io.rwbs.operation() == b'W');
    assert_eq!(
        writes.map(|io| io.bytes / 512).collect::<Vec<_>>(),
        [&[2048][..], &[8; 10]].concat()
    );
    assert_eq!(Stat::of(&finished).reads, 104);
    assert_eq!(Stat::of(&finished).read_sectors, 4432);
}

/// No event of a request shows these I/Os, because neither dm nor the brd beneath it has requests. The bios
/// must show the delays all the same.
#[test]
fn the_latency_of_dm_delay_is_seen() {
    let finished = replay(include_str!("traces/delay.trace"), Layer::Bio);
    let stat = Stat {
        reads: 9,
        read_sectors: 2112,
        writes: 2,
        write_sectors: 256,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
    for io in &finished {
        let latency_ms = (io.completed_ns - io.issued_ns) / 1_000_000;
        let delays = [50..62, 0..2];
        let delay = &delays[usize::from(io.rwbs.operation() == b'W')];
        assert!(delay.contains(&latency_ms), "{io:?}");
    }
}

/// The pairing must count one read, although dm itself counted two for this trace.
#[test]
fn a_bio_that_dm_splits_is_one_io() {
    let finished = replay(include_str!("traces/linear.trace"), Layer::Bio);
    let stat = Stat {
        reads: 1,
        read_sectors: 2048,
        ..Stat::default()
    };
    assert_eq!(Stat::of(&finished), stat);
}
