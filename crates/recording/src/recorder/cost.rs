//! The cost of recording: `cargo test --release -p dashpot-recording cost -- --ignored --nocapture`.

use std::sync::Arc;

use crate::clock::{Clock, MachineClock};
use crate::query::Query;
use crate::reader::Recording;
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
            latency_ns: 10_000_000..=u64::MAX,
            ..Query::default()
        };
        let slow = recording.ios(slow).expect("slow I/Os").len();
        let slow_ns = clock.thread_cpu_ns() - before_ns;
        let all = recording.ios(Query::default()).expect("all I/Os").len();
        let all_ns = clock.thread_cpu_ns() - before_ns - slow_ns;
        println!(
            "CPU ns per recorded I/O: {:.1} for the {slow} of 10 ms, {:.0} for all {all}",
            each(slow_ns),
            each(all_ns)
        );
    }
}
