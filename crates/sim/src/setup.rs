//! Turns a scenario into an engine, devices and clients.

use dashpot_engine::inject::RuleId;
use dashpot_engine::pool::PoolDisk;
use dashpot_engine::{
    Action, ClientId, Command, CommandError, CommandId, Device as EngineDevice, DiskConfig, DiskId,
    Engine, Input, Instant, PoolId, Random,
};
use dashpot_rules::PoolSpec;

use crate::device::Device;
use crate::error::{SetupError, WorkloadError};
use crate::scenario::{Calls, DiskSpec, Load, Scenario, Target, TraceEntry};
use crate::workload::Workload;

/// Makes the lab's engine with all rules armed, and returns it with the actions that the setup has caused.
pub(crate) fn engine(scenario: &Scenario) -> Result<(Engine, Vec<Action>), SetupError> {
    let mut engine = Engine::new();
    for disk in 0..scenario.disks.len() {
        let seed = seed(scenario, Seeds::Rules, disk);
        engine.add_disk(DiskConfig { seed });
    }
    for (pool, spec) in scenario.pools.iter().enumerate() {
        let config = spec.for_engine(|disk| pool_disk(disk, &scenario.disks));
        let added = engine.add_pool(config, Instant::ZERO);
        added.map_err(|error| SetupError::Pool { pool, error })?;
    }
    for (volume, spec) in scenario.volumes.iter().enumerate() {
        let added = engine.add_volume(spec.for_engine(PoolId(spec.pool as u32)));
        added.map_err(|error| SetupError::Volume { volume, error })?;
    }
    let mut actions = Vec::new();
    join(&mut engine, scenario, &mut actions);
    arm(&mut engine, scenario, &mut actions)?;
    engine.step(Instant::ZERO, Input::Tick, &mut actions);
    Ok((engine, actions))
}

/// A disk, as its pool sees it.
fn pool_disk(at: usize, disks: &[DiskSpec]) -> PoolDisk {
    PoolDisk {
        disk: DiskId(at as u32),
        size: disks.get(at).map_or(0, |disk| disk.size),
        rotational: disks.get(at).is_some_and(|disk| disk.rotational),
    }
}

/// Lets the clients of every disk join ([`Scenario::clients_of`]).
fn join(engine: &mut Engine, scenario: &Scenario, actions: &mut Vec<Action>) {
    for disk in 0..scenario.disks.len() {
        for (client, name) in scenario.clients_of(disk) {
            let device = EngineDevice::Disk(DiskId(disk as u32));
            let join = Input::Join {
                device,
                client,
                name,
            };
            engine.step(Instant::ZERO, join, actions);
        }
    }
}

fn arm(
    engine: &mut Engine,
    scenario: &Scenario,
    actions: &mut Vec<Action>,
) -> Result<(), SetupError> {
    let mut ids = (1..).map(RuleId);
    for (disk, spec) in scenario.disks.iter().enumerate() {
        for (group, specs) in &spec.rules {
            let numbered = specs.iter().cloned().zip(ids.by_ref());
            let numbered = numbered.map(|(spec, id)| (id, spec));
            let inject = Command::Inject {
                disk: DiskId(disk as u32),
                group: *group,
                rules: numbered.collect(),
            };
            command(engine, inject, actions).map_err(|error| SetupError::Rules { disk, error })?;
        }
    }
    Ok(())
}

/// Gives the engine a command, which it must answer at once.
fn command(
    engine: &mut Engine,
    command: Command,
    actions: &mut Vec<Action>,
) -> Result<(), CommandError> {
    let input = Input::Command(CommandId(u64::MAX), command);
    engine.step(Instant::ZERO, input, actions);
    match actions.pop() {
        Some(Action::Answer(_, answer)) => answer.map(drop),
        other => {
            actions.extend(other);
            Ok(())
        }
    }
}

pub(crate) fn devices(scenario: &Scenario) -> Vec<Device> {
    let device = |(at, spec): (usize, &DiskSpec)| {
        Device::new(&spec.model, seed(scenario, Seeds::Device, at))
    };
    scenario.disks.iter().enumerate().map(device).collect()
}

pub(crate) fn workloads(scenario: &Scenario) -> Result<Vec<Workload>, SetupError> {
    let workload = |at: usize| {
        let spec = &scenario.workloads[at];
        if scenario.check && !in_sectors(&spec.load) {
            return Err(WorkloadError::Sectors);
        }
        let seed = seed(scenario, Seeds::Workload, at);
        Workload::new(spec, ClientId::of_index(at), seed, |target| {
            size(scenario, target)
        })
    };
    let workload = |at| {
        workload(at).map_err(|error| SetupError::Workload {
            workload: at,
            error,
        })
    };
    (0..scenario.workloads.len()).map(workload).collect()
}

/// The size of a target, if a workload can have this target.
pub(crate) fn size(scenario: &Scenario, target: Target) -> Option<u64> {
    match target {
        Target::Volume(at) => scenario.volumes.get(at).map(|volume| volume.size),
        Target::Disk(at) => {
            let mut pooled = scenario.pools.iter().flat_map(PoolSpec::disks);
            let pooled = pooled.any(|disk| disk == at);
            let disk = scenario.disks.get(at).filter(|_| !pooled);
            disk.map(|disk| disk.size)
        }
    }
}

fn in_sectors(load: &Load) -> bool {
    let whole = |bytes: u64| bytes.is_multiple_of(SECTOR);
    let calls = |calls: &Calls| {
        whole(u64::from(calls.block)) && calls.region.is_none_or(|(start, _)| whole(start))
    };
    let entry = |entry: &TraceEntry| whole(entry.offset) && whole(u64::from(entry.length));
    match load {
        Load::Closed { calls: all, .. } | Load::Open { calls: all, .. } => calls(all),
        Load::Trace(entries) => entries.iter().all(entry),
    }
}

/// The kinds of random streams. The rules of each disk, the model of each disk, and each workload have a
/// stream of their own.
#[derive(Clone, Copy)]
enum Seeds {
    Rules,
    Device,
    Workload,
}

/// The seed of a stream, which does not depend on how many other streams there are.
fn seed(scenario: &Scenario, kind: Seeds, at: usize) -> u64 {
    let stream = (at as u64) << 2 | kind as u64;
    Random::new(scenario.seed ^ stream.wrapping_mul(0x9e6c_63d0_876a_3f6b)).next_u64()
}

/// Contents are checked in units of this many bytes.
pub(crate) const SECTOR: u64 = 512;
