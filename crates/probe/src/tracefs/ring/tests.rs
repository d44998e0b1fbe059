use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use proptest::prelude::*;

use super::{Item, Ring, count_lost};
use crate::error::TraceError;
use crate::tracefs::decoder::Decoder;
use crate::tracefs::events::{self, Kind};
use crate::tracefs::fixtures::{KERNELS, PageWriter, format, layout, record};

const STATISTICS: &str = "entries: 12\noverrun: 3\ncommit overrun: 4\nbytes: 99\n\
    oldest event ts:   100.000001\nnow ts:   101.5\ndropped events: 5\nread events: 7\n";

/// Makes a directory with a buffer for each CPU, and a ring that reads these buffers. A plain file stands for
/// each buffer, and the buffer ends where the file ends.
fn buffers(cpus: usize) -> (tempfile::TempDir, Ring) {
    let directory = tempfile::tempdir().expect("a directory");
    let cpus: Vec<_> = (0..cpus)
        .map(|cpu| directory.path().join(format!("cpu{cpu}")))
        .collect();
    for path in &cpus {
        fs::create_dir(path).expect("a directory");
        fs::write(path.join("trace_pipe_raw"), "").expect("a file");
        fs::write(path.join("stats"), STATISTICS).expect("a file");
    }
    let format = format(KERNELS[2], Kind::Requeue.name()).expect("the event");
    let decoder = events::Decoder::new(Kind::Requeue, &format).expect("a decoder");
    let decoder = Decoder::Block(decoder);
    let ring = Ring::open(&cpus, layout(KERNELS[2]), vec![(format.id, decoder)]);
    (directory, ring.expect("a ring"))
}

fn append(directory: &Path, cpu: usize, page: &[u8]) {
    let path = directory.join(format!("cpu{cpu}/trace_pipe_raw"));
    let mut file = OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(page).expect("room");
}

/// A page with an event at each of these times. Each event's sector is the number of the CPU.
fn page(cpu: usize, times: &[u64], missed: bool) -> Vec<u8> {
    let format = format(KERNELS[2], Kind::Requeue.name()).expect("the event");
    let bytes = record(&format, &[("sector", (cpu as u64).to_ne_bytes().to_vec())]);
    let mut page = PageWriter::new(times[0]);
    let mut before = times[0];
    for &at_ns in times {
        page.event(at_ns - before, &bytes);
        before = at_ns;
    }
    page.page(missed)
}

/// The items up to a time: the times of events, and the times of losses as negative numbers.
fn drain(ring: &mut Ring, until_ns: u64) -> Vec<i64> {
    let mut items = Vec::new();
    let take = |item: Item<'_>| {
        items.push(match item {
            Item::Entry(entry) => entry.at_ns() as i64,
            Item::Lost(at_ns) => -(at_ns as i64),
        });
    };
    ring.drain(until_ns, take).expect("good pages");
    items
}

proptest! {
    #[test]
    fn events_come_in_order_and_each_once(
        cpus in prop::collection::vec(prop::collection::vec(1_u64..1000, 0..60), 1..4),
        mut moments in prop::collection::vec(0_u64..1000, 0..5),
    ) {
        let (directory, mut ring) = buffers(cpus.len());
        let mut expected: Vec<_> = cpus.iter().flatten().map(|&at_ns| at_ns as i64).collect();
        expected.sort_unstable();
        for (cpu, mut times) in cpus.into_iter().enumerate() {
            times.sort_unstable();
            for times in times.chunks(7) {
                append(directory.path(), cpu, &page(cpu, times, false));
            }
        }
        moments.sort_unstable();
        moments.push(1000);
        let mut found = Vec::new();
        for until_ns in moments {
            found.extend(drain(&mut ring, until_ns));
            let seen = expected.partition_point(|&at_ns| at_ns <= until_ns as i64);
            prop_assert_eq!(&found[..], &expected[..seen]);
        }
    }
}

#[test]
fn what_comes_later_is_found_later() {
    let (directory, mut ring) = buffers(2);
    append(directory.path(), 0, &page(0, &[10, 30], false));
    assert_eq!(drain(&mut ring, 20), [10]);
    append(directory.path(), 1, &page(1, &[25, 40], false));
    assert_eq!(drain(&mut ring, 100), [25, 30, 40]);
    append(directory.path(), 0, &page(0, &[50], false));
    assert_eq!(drain(&mut ring, 100), [50]);
}

#[test]
fn a_loss_is_told_before_what_others_tell_of_its_time() {
    let (directory, mut ring) = buffers(2);
    append(directory.path(), 0, &page(0, &[10, 30, 60, 90], false));
    append(directory.path(), 1, &page(1, &[20, 40], true));
    append(directory.path(), 1, &page(1, &[80], true));
    append(directory.path(), 1, &page(1, &[85], false));
    let told = drain(&mut ring, 70);
    assert_eq!(told, [-20, 10, 20, 30, 40, -80, 60]);
    assert_eq!(drain(&mut ring, 100), [80, 85, 90]);
}

#[test]
fn a_record_that_was_not_asked_for_is_passed_over() {
    let (directory, mut ring) = buffers(1);
    let mut page = PageWriter::new(5);
    page.event(0, &[0xff; 64]);
    page.event(1, &[0; 4]);
    append(directory.path(), 0, &page.page(true));
    assert_eq!(drain(&mut ring, 100), []);
    append(directory.path(), 0, &self::page(0, &[9], false));
    assert_eq!(
        drain(&mut ring, 100),
        [-9, 9],
        "and the loss before it is not forgotten"
    );
}

#[test]
fn a_page_that_is_none_is_an_error() {
    let (directory, mut ring) = buffers(1);
    append(directory.path(), 0, &[0xff; 4096]);
    let error = ring.drain(100, |_| {});
    assert!(matches!(error, Err(TraceError::Format { .. })), "{error:?}");
}

#[test]
fn each_lost_event_is_counted_once() {
    let (directory, mut ring) = buffers(2);
    assert_eq!(ring.lost().expect("counts"), 24);
    assert_eq!(ring.lost().expect("counts"), 0);
    let more = STATISTICS.replace("overrun: 3", "overrun: 1003");
    fs::write(directory.path().join("cpu1/stats"), more).expect("a file");
    assert_eq!(ring.lost().expect("counts"), 1000);
    assert_eq!(count_lost(b"no such thing\n\xff: 7\noverrun: x\n"), 0);
}
