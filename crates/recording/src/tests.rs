//! Compares what is read from files with naive lists.

use std::path::Path;

use bytes::Bytes;
use dashpot_engine::Waits;
use dashpot_observe::{Fact, FinishedIo, IoWaits, Thread, Who};
use proptest::prelude::*;

use crate::batch::Batch;
use crate::block::Block;
use crate::error::Flaw;
use crate::generator::any_io;
use crate::ios::{IOS, Recorded, column, push};
use crate::query::Query;
use crate::read::{Source, TableFile};
use crate::reader::read_unverified;
use crate::seal::Label;
use crate::selected::Selected;
use crate::server::Server;
use crate::table::{GROUP_ROWS, OLDEST, VERSION};
use crate::write::Draft;

fn label() -> Label {
    Label {
        table: "ios".to_owned(),
        host: "host".to_owned(),
        clock_ns: 3,
        at_ns: 4,
    }
}

/// A file with `rows` rows in each row group.
fn file_of(ios: &[Recorded], rows: usize) -> Vec<u8> {
    file_of_format(VERSION, ios, rows)
}

fn file_of_format(format: u64, ios: &[Recorded], rows: usize) -> Vec<u8> {
    let mut draft = Draft::of_format(format, &IOS).expect("a draft");
    let mut batch = Batch::new(&IOS);
    for group in ios.chunks(rows) {
        batch.clear();
        for one in group {
            push(&mut batch, &one.io, one.is_in_flight);
        }
        draft.add(&batch).expect("a row group");
    }
    draft.seal(&label()).expect("a file")
}

fn opened(bytes: &[u8]) -> Result<TableFile, Flaw> {
    TableFile::parse(Source::Memory(Bytes::copy_from_slice(bytes)), &IOS, true)
}

fn read(bytes: &[u8]) -> Result<Vec<Recorded>, Flaw> {
    let file = opened(bytes)?;
    let mut ios = Vec::new();
    for group in 0..file.groups() {
        let mut block = Block::new(&IOS);
        block.begin(file.rows(group));
        let columns: Vec<usize> = (0..IOS.columns.len()).collect();
        file.load(group, &columns, &mut block)?;
        ios.extend((0..block.rows).map(|row| Recorded::of_row(&block, row)));
    }
    Ok(ios)
}

/// The I/Os of all rows as [`Selected::each`] gives them, each with its row group and its shape's number.
fn each(bytes: &[u8]) -> Result<Vec<(usize, u32, Recorded)>, Flaw> {
    let file = opened(bytes)?;
    let mut ios = Vec::new();
    let mut selected = Selected::default();
    for group in 0..file.groups() {
        selected.turn_to(Path::new(""), &file, group);
        selected.select(&file, group, &Query::default())?;
        selected.each(|shape, one| ios.push((group, shape, one.clone())));
    }
    Ok(ios)
}

/// An I/O without its numbers.
fn names_of(one: &Recorded) -> Recorded {
    let who = match &one.io.who {
        Some(Who::Thread(thread)) => Some(Who::Thread(Thread {
            pid: thread.pid.map(|_| 0),
            tid: thread.tid.map(|_| 0),
            ..thread.clone()
        })),
        who => who.clone(),
    };
    let mut facts = one.io.facts;
    let numbers = Fact::ALL.iter().filter(|fact| !fact.is_name());
    numbers.for_each(|fact| fact.set(&mut facts, None));
    let io = FinishedIo {
        who,
        facts,
        device: one.io.device.clone(),
        letters: one.io.letters.clone(),
        error: one.io.error.clone(),
        offset_bytes: 0,
        length_bytes: 0,
        depth: None,
        begun_ns: 0,
        ended_ns: 0,
        at_ns: 0,
        waits: match one.io.waits {
            IoWaits::Zio(_) => IoWaits::Zio(Waits::default()),
            IoWaits::Call(_) => IoWaits::Call(Waits::default()),
            IoWaits::Kernel { .. } => IoWaits::Kernel {
                queue_ns: None,
                device_ns: 0,
            },
        },
        inode: None,
        merged: 0,
        requeued: 0,
        ..one.io
    };
    Recorded { io, ..*one }
}

fn finished(io: FinishedIo) -> Recorded {
    Recorded {
        io,
        is_in_flight: false,
    }
}

fn any_recorded() -> impl Strategy<Value = Recorded> {
    (any_io(), any::<bool>()).prop_map(|(io, is_in_flight)| Recorded {
        io: FinishedIo {
            error: io.error.filter(|_| !is_in_flight),
            waits: if is_in_flight {
                IoWaits::Kernel {
                    queue_ns: None,
                    device_ns: io.ended_ns.wrapping_sub(io.begun_ns),
                }
            } else {
                io.waits
            },
            ..io
        },
        is_in_flight,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back(
        ios in prop::collection::vec(any_recorded(), 0..200),
        rows in 1..100_usize,
    ) {
        prop_assert_eq!(read(&file_of(&ios, rows)), Ok(ios));
    }

    #[test]
    fn rows_share_a_shape_if_they_share_their_names(
        ios in prop::collection::vec(any_recorded(), 0..60),
        repeats in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let copies: Vec<Recorded> = if ios.is_empty() {
Vec::new()
} else {
repeats.iter().map(|index| index.get(&ios).clone()).collect()
};
        let ios: Vec<Recorded> = ios.into_iter().chain(copies).collect();
        let found = each(&file_of(&ios, 40)).expect("a file");
        for (at, (group, shape, one)) in found.iter().enumerate() {
            prop_assert_eq!(one, &ios[at]);
            for (other_group, other_shape, other) in &found[..at] {
                if group == other_group {
                    prop_assert_eq!(shape == other_shape, names_of(one) == names_of(other));
                }
            }
        }
    }

    #[test]
    fn shapes_count_what_their_ios_add_up_to(ios in prop::collection::vec(any_recorded(), 1..60)) {
        let bytes = file_of(&ios, 100);
        let file = opened(&bytes).expect("a file");
        let mut selected = Selected::default();
        selected.turn_to(Path::new(""), &file, 0);
        selected.select(&file, 0, &Query::default()).expect("a block");
        let mut count = 0;
        let like = |one: &Recorded| ios.iter().filter(|io| names_of(io) == names_of(one)).cloned().collect();
        selected.counts(|first, n, bytes| {
            let own: Vec<Recorded> = like(first);
            let sum = own.iter().fold(0_u64, |sum, one| sum.saturating_add(one.io.bytes_done()));
            assert_eq!((n, bytes), (own.len() as u64, sum));
            count += n;
        });
        prop_assert_eq!(count, ios.len() as u64);
    }

    #[test]
    fn a_range_of_latencies_selects_the_rows_that_a_list_has(
        ios in prop::collection::vec(any_recorded(), 1..200),
        ends in any::<[prop::sample::Index; 2]>(),
        columns in prop::collection::vec(0..IOS.columns.len(), 0..9),
    ) {
        let times: Vec<u64> = ios.iter().map(|one| one.io.at_device_ns()).collect();
        let ends = ends.map(|index| times[index.index(times.len())]);
        let latency_ns = ends[0].min(ends[1])..=ends[0].max(ends[1]);
        let bytes = file_of(&ios, 1_000);
        let file = opened(&bytes).expect("a file");
        let needed = [column::LAYER, column::DEVICE, column::OUTCOME, column::BYTES, column::LATENCY];
        let mut selected = Selected::default();
        selected.turn_to(Path::new(""), &file, 0);
        for latency_ns in [latency_ns, 0..=u64::MAX] {
            // In the second round, the reader must again read the columns of which it has kept only a few
            // rows.
            selected.turn_to(Path::new(""), &file, 0);
            let query = Query {
                latency_ns: latency_ns.clone(),
                columns: needed.iter().chain(&columns).copied().collect(),
                ..Query::default()
            };
            selected.select(&file, 0, &query).expect("a block");
            let own: Vec<&Recorded> =
                ios.iter().filter(|one| latency_ns.contains(&one.io.at_device_ns())).collect();
            let mut found = Vec::new();
            selected.times(|_, first, bytes, ns| {
                found.push((first.io.device.clone(), first.is_in_flight, bytes, ns));
            });
            let expected: Vec<_> = own
                .iter()
                .map(|one| {
                    let io = &one.io;
                    (io.device.clone(), one.is_in_flight, io.bytes_done(), io.at_device_ns())
                })
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_changed_or_cut_file_is_refused_or_reads_as_it_was_written(
        ios in prop::collection::vec(any_recorded(), 1..50),
        at in any::<prop::sample::Index>(),
        bits in 1..=255_u8,
        is_cut in any::<bool>(),
    ) {
        let mut bytes = file_of(&ios, 20);
        let at = at.index(bytes.len());
        if is_cut {
bytes.truncate(at);
} else {
bytes[at] ^= bits;
}
        // A change to the first four bytes of a file goes unnoticed, because the reader does not need them.
        match read(&bytes) {
            Ok(again) => {
                prop_assert!(!is_cut && at < 4);
                prop_assert_eq!(again, ios);
            }
            Err(flaw) => prop_assert!(flaw != Flaw::Damaged(String::new())),
        }
    }
}

#[test]
fn a_message_has_no_control_characters_of_the_file() {
    let column = b"latency_ns".as_slice();
    let mut file = file_of(&[], 1);
    let at = file.windows(column.len()).position(|name| name == column);
    file[at.expect("a column")] = b'\n';
    // Without the checksums, the reader still finds that the column has a wrong name.
    let error = read_unverified(file).expect_err("another column");
    assert!(!error.to_string().contains('\n'), "{error}");
}

#[test]
fn other_files_are_refused_by_what_they_are() {
    let file = file_of(&[], 1);
    assert_eq!(read(b"").err(), Some(Flaw::Foreign));
    assert_eq!(read(b"a text of some length").err(), Some(Flaw::Foreign));
    assert!(matches!(
        read(&file[..file.len() - 1]),
        Err(Flaw::Damaged(_))
    ));
    let format = b"dashpot.format".as_slice();
    let at = file.windows(format.len()).position(|key| key == format);
    let mut newer = file.clone();
    // In Thrift, a field's header and a length precede the value.
    let digit = at.expect("a format") + format.len() + 2;
    newer[digit] = b'9';
    assert_eq!(read(&newer).err(), Some(Flaw::Newer(9)));
    newer[digit] = b'2';
    assert_eq!(read(&newer).err(), Some(Flaw::Older(2)));
    newer[digit] = b'4';
    assert!(matches!(read(&newer), Err(Flaw::Damaged(_))));
}

fn has_threads_as_processes(bytes: &[u8]) -> bool {
    let file = opened(bytes).expect("a file");
    let mut selected = Selected::default();
    selected.turn_to(Path::new(""), &file, 0);
    selected.select(&file, 0, &Query::default()).expect("I/Os");
    selected.has_threads_as_processes()
}

#[test]
fn a_file_of_an_older_format_has_no_threads() {
    let all: Vec<Recorded> = Server::new(false)
        .ios(20)
        .into_iter()
        .map(finished)
        .collect();
    for format in OLDEST..VERSION {
        let bytes = file_of_format(format, &all, 8);
        let mut expected = all.clone();
        for one in &mut expected {
            let Some(Who::Thread(thread)) = &mut one.io.who else {
                continue;
            };
            (thread.thread, thread.tid) = (None, None);
            assert!(thread.is_its_process());
        }
        assert_eq!(read(&bytes).as_ref(), Ok(&expected), "format {format}");
        assert!(has_threads_as_processes(&bytes));
        let alone: Vec<_> = each(&bytes)
            .expect("a file")
            .into_iter()
            .map(|(.., one)| one)
            .collect();
        assert_eq!(alone, expected, "format {format}");
        // In a part of the recording, which has the newest format, they still are.
        assert!(has_threads_as_processes(&file_of(&expected, 8)));
    }
    assert!(!has_threads_as_processes(&file_of(&all, 8)));
}

fn bytes_per_io(is_zio: bool) -> f64 {
    let ios: Vec<Recorded> = Server::new(is_zio)
        .ios(8 * GROUP_ROWS)
        .into_iter()
        .map(finished)
        .collect();
    let bytes = file_of(&ios, GROUP_ROWS);
    columns_of(&bytes);
    assert!(read(&bytes) == Ok(ios.clone()));
    bytes.len() as f64 / ios.len() as f64
}

/// Prints how many bytes each column takes per I/O.
fn columns_of(bytes: &[u8]) {
    let file = opened(bytes).expect("a file");
    let (sizes, rows) = file.column_bytes();
    for (column, bytes) in IOS.columns.iter().zip(&sizes) {
        println!("{:12} {:6.3}", column.name, *bytes as f64 / rows as f64);
    }
    let rest = bytes.len() as u64 - sizes.iter().sum::<u64>();
    println!("{:12} {:6.3}", "footer", rest as f64 / rows as f64);
}

#[test]
fn an_io_of_the_kernel_has_at_most_14_bytes_and_a_zio_24() {
    let (kernel, zio) = (bytes_per_io(false), bytes_per_io(true));
    println!("bytes per I/O of the kernel: {kernel:.2}, per zio: {zio:.2}");
    assert!(kernel <= 14.0 && zio <= 24.0);
}
