//! The cost of recording: `cargo test --release -p dashpot-recording cost -- --ignored --nocapture`.

use std::sync::Arc;

use crate::clock::{Clock, MachineClock};
use crate::ios::column;
use crate::reader::{Query, Recording};
use crate::recorder::{Options, Recorder};
use crate::server::Server;
use crate::table::GROUP_ROWS;

#[test]
#[ignore = "it measures, and asserts nothing about time"]
fn cost_of_an_io() {
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    for is_zio in [false, true] {
        let ios = Server::new(is_zio).ios(32 * GROUP_ROWS);
        let scratch = tempfile::tempdir().expect("a directory");
        let options = Options {
            keep_bytes: 1 << 30,
            host: "host".to_owned(),
            cpu_percent: 1_000,
        };
        let mut recorder =
            Recorder::create(scratch.path(), options, Arc::clone(&clock)).expect("a recorder");
        let (mut adding_ns, mut seals) = (0, 0);
        for group in ios.chunks(GROUP_ROWS / 2) {
            let before_ns = clock.thread_cpu_ns();
            group.iter().for_each(|io| recorder.add(io));
            recorder.seal(&[]);
            adding_ns += clock.thread_cpu_ns() - before_ns;
            seals += 1;
            while recorder.summary().seals < seals {
                std::thread::yield_now();
            }
        }
        let summary = recorder.finish(&[]);
        let each = |ns: u64| ns as f64 / ios.len() as f64;
        println!(
            "zio: {is_zio}; CPU ns per I/O: {:.0} in the reader's thread, {:.0} in the writer's; {:.2} bytes",
            each(adding_ns),
            each(summary.cpu_ns),
            each(summary.bytes),
        );
        let before_ns = clock.thread_cpu_ns();
        let recording = Recording::open(scratch.path()).expect("a recording");
        let slow = Query {
            min_ns: 10_000_000,
            ..Query::default()
        };
        let slow = recording.ios(slow).count();
        let slow_ns = clock.thread_cpu_ns() - before_ns;
        let all = recording.ios(Query::default()).count();
        let all_ns = clock.thread_cpu_ns() - before_ns - slow_ns;
        println!(
            "CPU ns per recorded I/O: {:.1} for the {slow} of 10 ms, {:.0} for all {all}",
            each(slow_ns),
            each(all_ns)
        );
    }
}

/// Three questions about 10 million I/Os; the directory stays for other engines if `DASHPOT_KEEP_RECORDING` names one.
#[test]
#[ignore = "it measures, and asserts nothing about time"]
fn cost_of_a_question() {
    let kept = std::env::var_os("DASHPOT_KEEP_RECORDING").map(std::path::PathBuf::from);
    let scratch = tempfile::tempdir().expect("a directory");
    let root = kept.unwrap_or_else(|| scratch.path().to_owned());
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let options = Options {
        keep_bytes: 1 << 40,
        host: "host".to_owned(),
        cpu_percent: 1_000,
    };
    let mut recorder = Recorder::create(&root, options, Arc::clone(&clock)).expect("a recorder");
    let ios = Server::new(false).ios(8 * GROUP_ROWS);
    for seals in 0..40 {
        for group in ios.chunks(GROUP_ROWS) {
            group.iter().for_each(|io| recorder.add(io));
            std::thread::sleep(std::time::Duration::from_millis(15));
        }
        recorder.seal(&[]);
        while recorder.summary().seals <= seals {
            std::thread::yield_now();
        }
    }
    recorder.finish(&[]);
    let questions: [(&str, u64, &[usize]); 3] = [
        ("selective", 30_000_000, &[column::PROCESS, column::BYTES]),
        ("unselective", 0, &[column::BYTES]),
        ("breakdown", 0, &[column::PROCESS, column::BYTES]),
    ];
    for (name, min_ns, columns) in questions {
        let mut took: Vec<u64> = (0..5)
            .map(|_| ask(&root, min_ns, columns, &*clock))
            .collect();
        took.sort_unstable();
        println!("{name}: {:.0} ms of CPU time", took[2] as f64 / 1e6);
    }
}

/// Sums the lengths of I/Os by their processes, and gives the CPU time.
fn ask(root: &std::path::Path, min_ns: u64, columns: &[usize], clock: &dyn Clock) -> u64 {
    let before_ns = clock.thread_cpu_ns();
    let query = Query {
        min_ns,
        columns: columns.to_vec(),
        ..Query::default()
    };
    let recording = Recording::open(root).expect("a recording");
    let mut sums: std::collections::BTreeMap<String, (u64, u64)> = Default::default();
    for selected in recording.blocks(query) {
        let selected = selected.expect("a block");
        let mut of_block: Vec<(u64, u64)> = Vec::new();
        for row in &selected.rows {
            let id = selected
                .block
                .text_id(column::PROCESS, *row)
                .unwrap_or_default() as usize;
            if of_block.len() <= id {
                of_block.resize(id + 1, (0, 0));
            }
            of_block[id].0 += 1;
            of_block[id].1 += selected.block.int(column::BYTES, *row).unwrap_or_default() as u64;
        }
        for (id, (n, bytes)) in of_block.into_iter().enumerate() {
            let sum = sums.entry(id.to_string()).or_default();
            (sum.0, sum.1) = (sum.0 + n, sum.1 + bytes);
        }
    }
    std::hint::black_box(sums);
    clock.thread_cpu_ns() - before_ns
}
