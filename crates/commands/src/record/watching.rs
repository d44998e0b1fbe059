//! The sources of one target, read together.

use dashpot_observe::{FinishedIo, Layer, Question, Schedule, Seen, Subject, Wanted};
use dashpot_output::usage;
use dashpot_sources::{Source, Target};

/// Ends the program if a target cannot be watched at these layers.
pub(super) fn check(target: &Target, layers: &[Layer]) {
    for layer in layers {
        let question = Question::of(Subject::Ios(Wanted::all(*layer)));
        if let Err(error) = target.check(&question) {
            usage(&error);
        }
    }
}

/// Begins to watch these layers of a target, I/O by I/O.
pub(super) fn sources<'a>(
    target: &'a Target,
    layers: &[Layer],
    schedule: &Schedule,
) -> anyhow::Result<Vec<Box<dyn Source + 'a>>> {
    check(target, layers);
    target.watch_all(layers, schedule)
}

/// Passes to `take` what the sources have seen since the last call of `next`. Returns whether any source goes
/// on.
pub(super) fn next(
    sources: &mut [Box<dyn Source + '_>],
    take: &mut dyn FnMut(Seen),
) -> anyhow::Result<bool> {
    let mut goes_on = false;
    for source in sources {
        if let Some(seen) = source.next()? {
            goes_on = true;
            take(seen);
        }
    }
    Ok(goes_on)
}

/// The I/Os in flight of all sources; `None` if they are not known.
pub(super) fn in_flight(sources: &mut [Box<dyn Source + '_>]) -> Option<Vec<FinishedIo>> {
    let each = sources.iter_mut().map(|source| source.in_flight());
    let known: Option<Vec<_>> = each.collect();
    Some(known?.concat())
}

/// Puts the times of all sources on one clock. Returns by how many nanoseconds these times may be off.
pub(super) fn put_on(sources: &mut [Box<dyn Source + '_>], ahead_ns: u64) -> u64 {
    let each = sources.iter_mut().map(|source| source.put_on(ahead_ns));
    each.max().unwrap_or_default()
}
