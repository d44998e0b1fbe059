//! What can be refused of a scenario before its first step.

use std::collections::BTreeSet;
use std::fmt::Display;

use dashpot_export::DiskInfo;
use dashpot_rules::ParseError;
use dashpot_rules::scenario::{Action, Scenario, Step};

use crate::daemon::Daemon;
use crate::refusal::{Refusal, RefusalKind};

/// The indices of a scenario's disks.
pub(super) fn disks_of(daemon: &Daemon, names: &[String]) -> Result<Vec<usize>, Refusal> {
    let mut disks = Vec::new();
    for name in names {
        let disk = daemon.disk(name)?;
        if disks.contains(&disk) {
            let error = format!("disk '{name}' is named twice");
            return Err(Refusal::new(RefusalKind::Unprocessable, error));
        }
        disks.push(disk);
    }
    if disks.is_empty() {
        let error = "the scenario has no disk";
        return Err(Refusal::new(RefusalKind::Unprocessable, error).remedy("name one"));
    }
    Ok(disks)
}

/// Refuses a scenario with a step that does not suit its disks.
pub(super) fn check(
    daemon: &Daemon,
    scenario: &Scenario,
    disks: &[usize],
) -> Result<(), ParseError> {
    let each = scenario.each_step();
    each.map(|(_, step)| step)
        .try_for_each(|step| check_step(daemon, step, disks))
}

fn check_step(daemon: &Daemon, step: &Step, disks: &[usize]) -> Result<(), ParseError> {
    let refused = |why: &dyn Display| step.error(why);
    match &step.action {
        Action::Inject { injection, .. } => {
            if injection.name.is_some() && disks.len() > 1 {
                return Err(refused(
                    &"a name is for one rule, and the scenario runs on several disks: write label = \"NAME\"",
                ));
            }
            daemon
                .check_name(injection.name.as_deref())
                .map_err(|refusal| refused(&refusal))?;
            for rule in &injection.rules {
                for disk in disks {
                    daemon
                        .fit(*disk, rule.clone())
                        .map_err(|refusal| refused(&refusal))?;
                }
            }
        }
        Action::Update { rule, .. } => {
            for disk in disks {
                daemon
                    .fit(*disk, (**rule).clone())
                    .map_err(|refusal| refused(&refusal))?;
            }
        }
        Action::Tune { pool, .. } => {
            pools_of(daemon, pool.as_deref(), disks).map_err(|refusal| refused(&refusal))?;
        }
        Action::Crash { .. } => {
            for disk in disks {
                check_power(daemon, *disk).map_err(|refusal| refused(&refusal))?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Refuses to cut the power of a disk, or of its pool, that loses nothing.
fn check_power(daemon: &Daemon, disk: usize) -> Result<(), Refusal> {
    let of_pool = daemon.info(disk).pool;
    let meant = |(at, info): &(usize, &DiskInfo)| match of_pool {
        Some(_) => info.pool == of_pool,
        None => *at == disk,
    };
    let mut disks = daemon.disks().filter(meant);
    match disks.find(|(_, info)| !info.store.starts_with("lossy")) {
        None => Ok(()),
        Some((_, info)) => {
            let error = format!("disk '{}' loses nothing in a power cut", info.name);
            Err(Refusal::conflict(error).remedy("give it a lossy: store"))
        }
    }
}

/// Refuses a scenario that sets tunables of a pool while another one does: neither could tell which values to
/// restore.
pub(super) fn check_pools(
    daemon: &Daemon,
    scenario: &Scenario,
    disks: &[usize],
) -> Result<(), Refusal> {
    let pools = tuned_pools(daemon, scenario, disks);
    for run in daemon.runs().running() {
        let theirs = tuned_pools(daemon, &run.scenario, &run.disks);
        if let Some(pool) = pools.intersection(&theirs).next() {
            let pool = &daemon.info_of_pool(*pool).name;
            return Err(Refusal::conflict(format!(
                "the scenario '{}' sets tunables of pool '{pool}', too, and runs already",
                run.name
            )));
        }
    }
    Ok(())
}

/// The pools whose tunables a scenario sets.
fn tuned_pools(daemon: &Daemon, scenario: &Scenario, disks: &[usize]) -> BTreeSet<usize> {
    let pools = scenario
        .each_step()
        .filter_map(|(_, step)| match &step.action {
            Action::Tune { pool, .. } => pools_of(daemon, pool.as_deref(), disks).ok(),
            _ => None,
        });
    pools.flatten().collect()
}

/// The pools whose tunables a step sets: the one with this name, or those of the disks.
pub(super) fn pools_of(
    daemon: &Daemon,
    name: Option<&str>,
    disks: &[usize],
) -> Result<Vec<usize>, Refusal> {
    if let Some(name) = name {
        return Ok(vec![daemon.pool(name)?]);
    }
    let mut pools = Vec::new();
    for disk in disks {
        let info = daemon.info(*disk);
        let pool = info.pool.ok_or_else(|| {
            Refusal::conflict(format!("disk '{}' belongs to no pool", info.name))
                .remedy("name one: tune = { pool = \"NAME\", … }")
        })?;
        if !pools.contains(&pool) {
            pools.push(pool);
        }
    }
    Ok(pools)
}
