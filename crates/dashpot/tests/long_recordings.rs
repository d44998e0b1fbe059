//! Recordings that cover a long time with few I/Os. The memory of a report follows the content of the
//! recording, and not the time that the user asks about, so each report keeps to a bound, or is refused.

// A test may end with a panic.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dashpot_observe::{FinishedIo, IoWaits, Kind, Layer};
use dashpot_recording::{Clock, Event, Moment, Options, Recorder};

/// A report may take this much memory, in KiB. The kernel refuses more, and the program then aborts.
const MEMORY_KIB: u64 = 256 << 10;
const SECOND_NS: u64 = 1_000_000_000;
const DAY_NS: u64 = 86_400 * SECOND_NS;
/// In the year 2026.
const NOW_NS: u64 = 1_780_000_000 * SECOND_NS;

/// A clock whose wall time the test sets.
struct SetClock(AtomicU64);

impl Clock for SetClock {
    fn now(&self) -> Moment {
        let unix_ns = self.0.load(Ordering::Relaxed);
        Moment {
            monotonic_ns: unix_ns,
            boottime_ns: unix_ns,
            unix_ns,
        }
    }

    fn thread_cpu_ns(&self) -> u64 {
        0
    }
}

/// Records an I/O at each of these moments, and one that is in flight from the first moment to the last.
fn record(root: &Path, moments_ns: &[u64]) {
    let first_ns = moments_ns[0];
    let last_ns = moments_ns[moments_ns.len() - 1];
    let clock = Arc::new(SetClock(AtomicU64::new(first_ns)));
    let options = Options {
        keep_bytes: 1 << 30,
        host: "host".to_owned(),
        cpu_percent: 100,
    };
    let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
    let mut recorder = Recorder::create(root, options, shared).unwrap();
    for device in ["vda", "vdb"] {
        recorder.mark(Event::Watched, Some(device), None, Some("kernel disk"));
    }
    let mut add = |device: &str, begun_ns: u64, ended_ns: u64| {
        recorder.add(&FinishedIo {
            length_bytes: 4_096,
            begun_ns,
            ended_ns,
            at_ns: ended_ns,
            waits: IoWaits::Kernel {
                queue_ns: None,
                device_ns: ended_ns - begun_ns,
            },
            ..FinishedIo::bare(Layer::Disk, device.into(), Kind::of_word("read"))
        });
        clock.0.store(ended_ns, Ordering::Relaxed);
        recorder.is_due();
        recorder.seal(&[]);
    };
    for at_ns in moments_ns {
        add("vda", *at_ns, at_ns + SECOND_NS);
    }
    add("vdb", first_ns, last_ns + 2 * SECOND_NS);
    recorder.finish(&[]);
}

fn report(recording: &Path, words: &[&str]) -> Output {
    let script = format!("ulimit -c 0; ulimit -d {MEMORY_KIB}; exec \"$@\"");
    Command::new("sh")
        .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_dashpot")])
        .args(words)
        .arg("--in")
        .arg(recording)
        .output()
        .unwrap()
}

#[test]
fn a_report_takes_no_more_memory_for_a_longer_time_or_for_shorter_intervals() {
    let scratch = tempfile::tempdir().unwrap();
    let year = scratch.path().join("year");
    let months: Vec<u64> = (0..12).map(|at| NOW_NS + at * 30 * DAY_NS).collect();
    record(&year, &months);
    // The clock of a machine without a battery begins in 1970, until it hears the time.
    let jump = scratch.path().join("jump");
    record(&jump, &[5 * SECOND_NS, NOW_NS]);
    let reports = [
        &["iostat"][..],
        &["stat", "disk.busy"],
        &["stat", "disk.latency[op]"],
        &["iolatency"],
        &["heatmap"],
        &["observe"],
    ];
    let schedules = [
        &[][..],
        &["1ns", "3"],
        &["1ms", "3"],
        &["1", "5"],
        &["1ms"],
        &["2400h"],
    ];
    // These reports have no intervals.
    let whole = [
        &["snoop"][..],
        &["snoop", "--json", "--where", "latency>=1s"],
        &["quantize"],
        &["quantize", "--by", "device"],
        &["diff", "--slow", "latency>=10s"],
        &["diff", "--during", "2026-05-28..2026-06-28"],
        &["diff", "--baseline", "OTHER"],
    ];
    let scheduled = reports
        .iter()
        .flat_map(|report| schedules.map(|schedule| [*report, schedule].concat()));
    let all: Vec<Vec<&str>> = scheduled.chain(whole.map(<[&str]>::to_vec)).collect();
    let mut wrong = Vec::new();
    for (recording, other) in [(&year, &jump), (&jump, &year)] {
        for words in &all {
            let words: Vec<&str> = words
                .iter()
                .map(|word| match *word {
                    "OTHER" => other.to_str().unwrap(),
                    word => word,
                })
                .collect();
            let ended = report(recording, &words);
            let why = String::from_utf8_lossy(&ended.stderr);
            let is_named = match ended.status.code() {
                Some(0) => !ended.stdout.is_empty(),
                // Nothing of that month is in the recording whose clock jumps.
                Some(1) => {
                    let whys = [
                        "dashpot: the period has ",
                        "dashpot: the recording is from ",
                    ];
                    whys.iter().any(|words| why.starts_with(words))
                }
                _ => false,
            };
            if !is_named {
                wrong.push(format!("{words:?} {:?}: {why}", ended.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
