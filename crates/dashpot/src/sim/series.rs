//! The curves in the pictures that show figures over time.

use dashpot_engine::pool::TxgStats;
use dashpot_sim::{Sample, Simulation};
use dashpot_sources::simulated::pools;
use dashpot_text::chart::Line;

/// The figures of one simulation over time.
pub(super) struct Series {
    pub(super) seconds: f64,
    pub(super) dirty: Line,
    pub(super) txgs: Line,
    pub(super) active: Line,
    pub(super) throughput: Line,
}

impl Series {
    pub(super) fn of(simulation: &Simulation) -> Series {
        let samples = simulation.samples();
        let line = |figure: fn(&Sample) -> u64, unit: f64| {
            let point = |sample: &Sample| (seconds(sample), figure(sample) as f64 / unit);
            samples.iter().map(point).collect()
        };
        Series {
            seconds: simulation.now().as_nanos() as f64 / 1e9,
            dirty: line(
                |sample| sample.pools.iter().map(|pool| pool.dirty).sum(),
                MEBI,
            ),
            txgs: txgs(simulation),
            active: line(
                |sample| sample.disks.iter().map(|disk| u64::from(disk.active)).sum(),
                1.0,
            ),
            throughput: throughput(samples),
        }
    }
}

/// The dirty data of the remembered transaction groups when their syncs began.
fn txgs(simulation: &Simulation) -> Line {
    let pools = pools(simulation);
    let mut line: Line = pools
        .iter()
        .flat_map(|pool| &pool.stats.txgs)
        .filter(|txg| txg.dirty > 0)
        .map(|txg| (synced(txg), txg.dirty as f64 / MEBI))
        .collect();
    line.sort_by(|a, b| a.0.total_cmp(&b.0));
    line
}

/// The time at which a sync began, in seconds.
fn synced(txg: &TxgStats) -> f64 {
    let at = txg.birth + txg.open + txg.wait;
    at.as_nanos() as f64 / 1e9
}

/// The throughput of the calls that ended between two samples, in bytes per second.
fn throughput(samples: &[Sample]) -> Line {
    let rate = |pair: &[Sample]| {
        let elapsed = seconds(&pair[1]) - seconds(&pair[0]);
        (seconds(&pair[1]), pair[1].bytes as f64 / MEBI / elapsed)
    };
    samples.windows(2).map(rate).collect()
}

fn seconds(sample: &Sample) -> f64 {
    sample.at.as_nanos() as f64 / 1e9
}

const MEBI: f64 = (1 << 20) as f64;
