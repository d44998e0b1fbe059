//! A simulation for a page. The simulation runs at the speed that the user asks for.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration as Real, Instant as RealInstant};

use dashpot_api::{Clock, Source, SourceDevice, SourceKind, SourceLayer};
use dashpot_cli::{PageArgs, Speed};
use dashpot_daemon::http::{IoMemory, Remembering};
use dashpot_engine::{Duration, Instant};
use dashpot_export::complain;
use dashpot_observe::Knows;
use dashpot_sim::Simulation;
use dashpot_sim::scenario::Scenario;
use dashpot_sources::simulated::Names;

use super::{MEMORY, Page};

/// Simulates a lab and serves its page, until the user ends the program.
pub fn play(
    lab: &Path,
    mut simulation: Simulation,
    args: &PageArgs,
    speed: Speed,
    interrupted: &AtomicBool,
) -> anyhow::Result<()> {
    let mut told = begun(lab, simulation.scenario());
    let memory = Arc::new(IoMemory::new(Knows::Zios, told.clone(), MEMORY));
    let page = Page::start(args, Arc::clone(&memory) as Arc<_>)?;
    complain(format_args!("page  {}", page.url));
    let names = Names::of(simulation.scenario());
    simulation.record_events(true);
    let begun = RealInstant::now();
    while !simulation.done() && !interrupted.load(Ordering::Relaxed) {
        let until = simulation.now() + PIECE;
        let until = match speed.at(begun.elapsed()) {
            Some(reached) => until.min(Instant::from_nanos(reached)),
            None => until,
        };
        if until <= simulation.now() {
            std::thread::sleep(NAP);
            continue;
        }
        simulation.run_until(until)?;
        let ios: Vec<_> = simulation
            .events()
            .map(|event| names.finished(&event))
            .collect();
        tell_time(&mut told, simulation.now());
        memory.add(ios, 0, told.clone());
    }
    memory.end(None);
    if !interrupted.load(Ordering::Relaxed) {
        complain(format_args!(
            "The simulation has ended at {}. Its page stays until Ctrl-C.",
            Duration::from_nanos(simulation.now().as_nanos())
        ));
    }
    while !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(NAP);
    }
    drop(page);
    Ok(())
}

fn begun(lab: &Path, scenario: &Scenario) -> Remembering {
    let device = |layer, name: &str| SourceDevice {
        over: Vec::new(),
        layer,
        name: name.to_owned(),
    };
    let disks = scenario.disks.iter();
    let disks = disks.map(|disk| device(SourceLayer::Disk, &disk.name));
    let volumes = scenario.volumes.iter();
    let volumes = volumes.map(|volume| device(SourceLayer::Volume, &volume.name));
    let name = lab.display().to_string();
    Remembering {
        source: Source {
            kind: SourceKind::Simulation,
            words: String::new(),
            name,
            devices: disks.chain(volumes).collect(),
            gaps: Vec::new(),
            ended_ns: None,
            trouble: None,
        },
        clock: Clock {
            now_ns: 0,
            started_ns: 0,
            unix_ns: 0,
        },
    }
}

fn tell_time(told: &mut Remembering, now: Instant) {
    told.clock.now_ns = now.as_nanos();
    told.clock.unix_ns = now.as_nanos();
}

/// How much virtual time is simulated, at most, before the page receives the new results.
const PIECE: Duration = Duration::from_millis(100);
/// How long the program sleeps when the simulation is ahead of the speed that the user asked for.
const NAP: Real = Real::from_millis(5);
