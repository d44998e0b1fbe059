//! Watches block devices. `watch [-Q [-P] [-C]] [-v] DEVICE… [SECONDS]` prints, each second, how many I/Os ended,
//! how many events were lost, and how much CPU time the watch took. With `-P` it also follows processes, with `-C` cgroups; with
//! `-v` it also prints each I/O.

// An example may end with a panic when the reader of its output is gone.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::time::{Duration, Instant};

use dashpot_probe::{Device, Io, Options, Start, Tracer};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn Error>> {
    let (options, words): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .partition(|word| word.starts_with('-'));
    let has = |option: &str| options.iter().any(|given| given == option);
    let seconds = words.iter().find_map(|word| word.parse().ok());
    let names = words.iter().filter(|word| word.parse::<u64>().is_err());
    let devices = names
        .map(|name| Device::find(name))
        .collect::<Result<Vec<_>, _>>()?;
    let mut tracer = Tracer::start(&Options {
        devices,
        later: false,
        start: if has("-Q") {
            Start::Queue
        } else {
            Start::Issue
        },
        submitters: has("-Q"),
        processes: has("-P"),
        cgroups: has("-C"),
    })?;
    println!("watching");
    for _ in 0..seconds.unwrap_or(u64::MAX) {
        second(&mut tracer, has("-v"))?;
    }
    Ok(())
}

fn second(tracer: &mut Tracer, verbose: bool) -> Result<(), Box<dyn Error>> {
    let (mut count, mut bytes, mut latency_ns, mut lost) = (0_u64, 0, 0, 0);
    let (cpu, end) = (cpu_time(), Instant::now() + Duration::from_secs(1));
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(50));
        let progress = tracer.read(u64::MAX, |_, io| {
            count += 1;
            bytes += io.bytes;
            latency_ns += latency(io);
            if verbose {
                println!("{io:?}");
            }
        })?;
        lost += progress.lost;
    }
    let cost = cpu_time() - cpu;
    println!(
        "{count} I/Os, {bytes} bytes, {} ns on average, {} in flight, {lost} lost, {:.1} ms of CPU, {} ns each",
        latency_ns.checked_div(count).unwrap_or(0),
        tracer.in_flight().count(),
        cost.as_secs_f64() * 1e3,
        (cost.as_nanos() as u64).checked_div(count).unwrap_or(0),
    );
    for gone in tracer.roster().gone() {
        println!("{} is no longer there", gone.name);
    }
    Ok(())
}

fn latency(io: &Io) -> u64 {
    io.completed_ns.saturating_sub(io.issued_ns)
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
