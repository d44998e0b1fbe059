//! Recordings as sources of reports: a period of the past, interval by interval or I/O by I/O.

mod busy;
mod columns;
mod counted;
mod counting;
mod earlier;
mod history;
mod intervals;
mod ios;
mod layers;
mod losses;
mod owners;
mod pauses;
mod period;
mod spans;
mod stacked;
#[cfg(test)]
mod tests;
mod threads;

use dashpot_observe::{Question, Schedule, Subject};

use self::intervals::RecordedIntervals;
use self::ios::RecordedIos;
use self::layers::RecordedLayers;
use super::source::Source;

pub use history::{KERNEL_DISK, KERNEL_FS};
pub use period::Recorded;

/// Begins to read the answer to a question from a recording. Each part has the recording's I/Os on one layer
/// of the question; there is at least one.
pub fn watch_recorded<'a>(
    parts: &'a [Recorded],
    question: &Question,
    schedule: &Schedule,
) -> anyhow::Result<Box<dyn Source + 'a>> {
    if let Some(first) = parts.first() {
        first.tell_gaps(counted::answer(question));
        let others = parts.iter().find(|part| part.owner() != first.owner());
        others.into_iter().for_each(Recorded::tell_pauses);
    }
    let sources = parts
        .iter()
        .map(|part| watch_part(part, question, schedule));
    let mut sources: Vec<Box<dyn Source + 'a>> = sources.collect::<anyhow::Result<_>>()?;
    match (sources.pop(), sources.is_empty()) {
        (Some(only), true) => Ok(only),
        (last, _) => Ok(Box::new(RecordedLayers::of(
            parts,
            sources.into_iter().chain(last),
        ))),
    }
}

fn watch_part<'a>(
    recorded: &'a Recorded,
    question: &Question,
    schedule: &Schedule,
) -> anyhow::Result<Box<dyn Source + 'a>> {
    Ok(match question.subject {
        Subject::Ios(wanted) => {
            Box::new(RecordedIos::begin(recorded, wanted, &question.predicates)?)
        }
        _ => Box::new(RecordedIntervals::begin(recorded, question, schedule)?),
    })
}
