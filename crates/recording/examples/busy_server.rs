//! Writes a recording of an invented server, so that a developer can measure queries of a large recording:
//! `busy_server DIRECTORY IOS`.

// An example may end with a panic when the reader of its output is gone.
#![allow(clippy::print_stderr)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashpot_recording::{Clock, Moment, Options, Recorder};

#[path = "../src/server.rs"]
mod server;

use server::{AHEAD_NS, Server};

/// A clock that shows the time of the invented server.
#[derive(Default)]
struct MadeClock(AtomicU64);

impl Clock for MadeClock {
    fn now(&self) -> Moment {
        let now_ns = self.0.load(Ordering::Relaxed);
        Moment {
            monotonic_ns: now_ns,
            boottime_ns: now_ns,
            unix_ns: now_ns + AHEAD_NS,
        }
    }

    fn thread_cpu_ns(&self) -> u64 {
        0
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, ios] = &arguments[..] else {
        eprintln!("usage: busy_server DIRECTORY IOS");
        return ExitCode::FAILURE;
    };
    let Ok(ios) = ios.parse() else {
        eprintln!("'{ios}' is not a number of I/Os");
        return ExitCode::FAILURE;
    };
    match write(Path::new(directory), ios) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(lost) => {
            eprintln!(
                "the recorder lost {lost} I/Os, because its writer fell behind between two seals"
            );
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes a recording of this many I/Os. Returns how many of them the recorder lost.
fn write(directory: &Path, ios: usize) -> Result<u64, dashpot_recording::RecordingError> {
    let clock = Arc::new(MadeClock::default());
    let mut server = Server::new(false);
    let first = server.ios(1).remove(0);
    clock.0.store(first.begun_ns, Ordering::Relaxed);
    let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
    let mut recorder = Recorder::create(directory, OPTIONS, shared)?;
    let mut left = ios;
    while left > 0 {
        let some = server.ios(left.min(CHUNK));
        left -= some.len();
        for io in &some {
            recorder.add(io);
        }
        let last_ns = some.last().map_or(0, |io| io.ended_ns);
        clock.0.store(last_ns, Ordering::Relaxed);
        if recorder.is_due() {
            let seals = recorder.summary().seals;
            recorder.seal(&[]);
            // If the writer is behind, the recorder drops I/Os instead of waiting. So wait for the seal here.
            while recorder.summary().stopped.is_none() && recorder.summary().seals == seals {
                std::thread::sleep(PAUSE);
            }
        }
    }
    Ok(recorder.finish(&[]).lost)
}

const OPTIONS: Options = Options {
    keep_bytes: u64::MAX,
    host: String::new(),
    cpu_percent: 100,
};
const CHUNK: usize = 1 << 15;
const PAUSE: Duration = Duration::from_millis(1);
