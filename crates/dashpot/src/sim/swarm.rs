//! `--swarm`: simulates random labs with all checks, until one shows a defect.

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::bail;
use dashpot_commands::{INTERRUPTED, stop_on_signals};
use dashpot_output::{print, progress_bar};
use dashpot_sim::swarm::{Summary, run_seed};

/// Runs the labs of `count` seeds. Stops at the first failure, and prints the command that repeats
/// it.
pub(super) fn swarm(first: u64, count: u64) -> anyhow::Result<ExitCode> {
    let interrupted = stop_on_signals()?;
    let progress = progress_bar();
    let mut total = Summary::default();
    let mut seeds = 0;
    for seed in (first..=u64::MAX).take(usize::try_from(count)?) {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let again = format!("again: dashpot sim --swarm 1 --seed {seed}");
        match catch_unwind(|| run_seed(seed)) {
            Ok(Ok(summary)) => add(&mut total, &summary),
            Ok(Err(violation)) => bail!("seed {seed}, {violation}; {again}"),
            // The panic has printed its message.
            Err(_) => bail!("seed {seed} panicked; {again}"),
        }
        seeds += 1;
        progress.set_message(format!("{seeds} of {count} labs, {} calls", total.calls));
    }
    progress.finish_and_clear();
    print(&format!(
        "{seeds} labs from seed {first}: {} calls, {} failed, {} aborted, digest {:016x}\n",
        total.calls, total.failed, total.aborted, total.digest
    ))?;
    if seeds < count {
        Ok(ExitCode::from(INTERRUPTED))
    } else {
        Ok(ExitCode::SUCCESS)
    }
}

/// Adds a summary. The digest depends on the order of the seeds, so that a missing seed changes it.
fn add(total: &mut Summary, summary: &Summary) {
    total.calls += summary.calls;
    total.failed += summary.failed;
    total.aborted += summary.aborted;
    total.digest = total.digest.rotate_left(1) ^ summary.digest;
}
