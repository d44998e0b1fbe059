//! Recordings as sources of reports: a period of the past, interval by interval or I/O by I/O.

mod busy;
mod columns;
mod counted;
mod counting;
mod history;
mod intervals;
mod ios;
mod period;
mod spans;

use dashpot_observe::{Question, Schedule, Subject};

use self::intervals::RecordedIntervals;
use self::ios::RecordedIos;
use super::source::Source;

pub(crate) use history::{KERNEL_DISK, KERNEL_FS};
pub(crate) use period::Recorded;

/// Begins to read the answer to a question from a recording.
pub(crate) fn watch_recorded<'a>(
    recorded: &'a Recorded,
    question: &Question,
    schedule: &Schedule,
) -> anyhow::Result<Box<dyn Source + 'a>> {
    recorded.tell_gaps(counted::answer(question));
    Ok(match question.subject {
        Subject::Ios(wanted) => {
            Box::new(RecordedIos::begin(recorded, wanted, &question.predicates)?)
        }
        _ => Box::new(RecordedIntervals::begin(recorded, question, schedule)?),
    })
}
