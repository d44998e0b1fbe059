//! The swarm: random labs with every check switched on. It finds cases for which nobody has written a test.
//!
//! From a seed, the swarm makes a small lab with single disks and a pool, volumes, rules with errors and
//! hangs, clients with overlapping I/O, commands, and lost connections. In the last part of the simulation,
//! all rules are cleared, all disks are resumed, and a last client flushes and reads everything. At some
//! moments, and at the end, the checker pretends that the power is lost.

mod dice;
mod lab;
mod load;

use dashpot_engine::{Duration, Instant, Op, Random};

use self::dice::Dice;
use crate::driver::Simulation;
use crate::error::Violation;
use crate::scenario::Scenario;

/// A summary of the simulation of one seed's lab.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    pub seed: u64,
    /// The number of disks.
    pub disks: usize,
    /// The number of pools.
    pub pools: usize,
    /// The number of volumes.
    pub volumes: usize,
    /// How many calls have ended.
    pub calls: u64,
    /// How many of the ended calls failed.
    pub failed: u64,
    /// How many calls were lost with their connection.
    pub aborted: u64,
    /// The virtual time at the end.
    pub lasted: Duration,
    /// A digest of all latencies, which is equal for equal runs.
    pub digest: u64,
}

/// Runs the lab of a seed to its end.
pub fn run_seed(seed: u64) -> Result<Summary, Violation> {
    let scenario = scenario(seed);
    let begin = |what: String| Violation {
        at: Instant::ZERO,
        what,
    };
    let mut simulation = Simulation::new(scenario).map_err(|error| begin(error.to_string()))?;
    let lasts = simulation.scenario().lasts.as_nanos();
    for part in 1..=POWER_LOSSES {
        let until = Instant::from_nanos(lasts / POWER_LOSSES * part);
        simulation.run_until(until)?;
        simulation.check_power_loss(seed ^ part)?;
    }
    if !simulation.drain(simulation.now() + PATIENCE)? {
        return Err(never_ends(&simulation));
    }
    simulation.check_power_loss(seed)?;
    simulation.check_mirrors()?;
    Ok(summary(seed, &simulation))
}

/// The lab of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut dice = Dice::new(seed);
    let mut scenario = lab::lab(seed, &mut dice);
    load::load(&mut scenario, &mut dice);
    scenario
}

fn never_ends(simulation: &Simulation) -> Violation {
    let in_flight =
        (0..simulation.scenario().workloads.len()).map(|at| simulation.unfinished(at).count());
    let what = format!(
        "{PATIENCE} after the end, with no rules and all disks resumed, calls in flight by \
         workload: {:?}",
        in_flight.collect::<Vec<_>>()
    );
    Violation {
        at: simulation.now(),
        what,
    }
}

fn summary(seed: u64, simulation: &Simulation) -> Summary {
    let scenario = simulation.scenario();
    let mut summary = Summary {
        seed,
        disks: scenario.disks.len(),
        pools: scenario.pools.len(),
        volumes: scenario.volumes.len(),
        lasted: simulation.now().since(Instant::ZERO),
        ..Summary::default()
    };
    for results in (0..scenario.workloads.len()).filter_map(|at| simulation.results(at)) {
        summary.aborted += results.aborted;
        // No simulated client syncs files, and published digests include neither this operation nor later ones.
        let ops = Op::ALL.into_iter().take_while(|op| *op != Op::Sync);
        for op in ops.map(|op| results.op(op)) {
            summary.calls += op.calls;
            summary.failed += op.failed;
            let latencies = [&op.at_client, &op.failed_at_client].into_iter().flatten();
            let squares: u128 = latencies.map(|latency| latency.sum_of_squares()).sum();
            summary.digest = Random::new(summary.digest ^ squares as u64).next_u64();
        }
    }
    summary
}

/// How often the checker pretends, before the end, that the power is lost.
const POWER_LOSSES: u64 = 8;
/// How long a lab may take to finish its work once its planned time is over, in virtual time.
const PATIENCE: Duration = Duration::from_secs(600);
