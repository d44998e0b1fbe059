//! The table of marks: events that happen to a recording, and other events on its host that affect the I/Os.

use std::path::Path;

use crate::batch::Batch;
use crate::block::Block;
use crate::error::RecordingError;
use crate::read::TableFile;
use crate::table::Table;

/// The table of marks.
pub(crate) static MARKS: Table = Table {
    name: "marks",
    columns: column::COLUMNS,
};

/// The columns of the table of marks.
pub(crate) mod column {
    use super::Mark;
    use crate::batch::Row;
    use crate::table::{Column, columns};

    columns! { COLUMNS, fill(mark: &Mark):
        /// The moment of the event, in nanoseconds since 1970.
        AT = Column::number("at_ns").bounded(), mark.at_ns as i64;
        /// The same moment on the clock of the source.
        CLOCK = Column::number("clock_ns"), mark.clock_ns as i64;
        /// The kind of event.
        KIND = Column::word("kind"), mark.event.word();
        /// The device of the event, if it has one.
        DEVICE = Column::word("device").optional(), mark.device.as_deref();
        /// A number, or a time in nanoseconds, depending on the kind of event.
        N = Column::number("n").optional(), mark.n;
        /// More about the event, in words.
        TEXT = Column::word("text").optional(), mark.text.as_deref();
    }
}

/// An event that happened to a recording or affects its I/Os, and the time of the event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// The moment of the event, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The same moment on the clock of the source.
    pub clock_ns: u64,
    /// The kind of event.
    pub event: Event,
    /// The device of the event, if it has one.
    pub device: Option<String>,
    /// A number, or a time in nanoseconds, depending on the kind of event.
    pub n: Option<i64>,
    /// More about the event, in words.
    pub text: Option<String>,
}

/// Defines the kinds of events and their words.
macro_rules! events {
    ($($(#[$doc:meta])+ $name:ident = $word:literal;)+) => {
        /// A kind of event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Event { $($(#[$doc])+ $name),+ }

        impl Event {
            /// All kinds of events.
            pub const ALL: &[Event] = &[$(Event::$name),+];

            /// The event's word in the file.
            pub fn word(self) -> &'static str {
                match self { $(Event::$name => $word),+ }
            }
        }
    };
}

events! {
    /// The recorder began; `n` is the id of the thread that writes, so that readers can recognise the
    /// recorder's own I/O.
    Began = "began";
    /// The recorder ended.
    Ended = "ended";
    /// `n` events or I/Os are missing; if the recording has several sources, the text says which source lost them.
    Lost = "lost";
    /// `n` sync calls were on unknown devices.
    Unplaced = "unplaced";
    /// The wall clock jumped by `n` nanoseconds (negative: backwards).
    ClockStep = "clock step";
    /// The machine was suspended for `n` nanoseconds.
    Suspend = "suspend";
    /// The device no longer exists; the text begins with its layer.
    Vanished = "vanished";
    /// The recorder cannot write, and has stopped.
    Stopped = "stopped";
    /// The recorder took too much CPU time, and now records only the counts of each second.
    SecondsOnly = "seconds only";
    /// The recorder records single I/Os again.
    SingleIos = "single I/Os";
    /// The user's trigger fired.
    Trigger = "trigger";
    /// The file of I/Os that ends here has slow I/Os; the text is the layer of the device, and the reason.
    Slow = "slow";
    /// The recorder watches a device from now on; the text says what kind of device it is.
    Watched = "watched";
    /// The device is over other devices of the recording, so that sums leave it out; the text is its layer and
    /// the names of those devices: `disk: vda, vdb`.
    Stacked = "stacked";
    /// The recording is a part of another recording; the text has the conditions on its I/Os.
    Cut = "cut";
    /// The text names a source. Its times are recorded on the clock that all sources share, and may be off by
    /// up to `n` nanoseconds.
    Clock = "clock";
    /// A source is not recorded any more. The text has the source's name, and then the reason.
    WatchEnded = "watch ended";
    /// The file of I/Os that ends here lacks the I/Os in flight, because a daemon did not answer; if the recording
    /// has several sources, the text says which one.
    InFlightUnknown = "in flight unknown";
    /// `n` I/Os in flight of the device began before the recorder watched it; without `n`, the kernel does not
    /// count them. The text is the device's layer, and the least age of these I/Os in nanoseconds: `disk: 5000`.
    Earlier = "earlier in flight";
    /// A rule was added, changed or removed, or a scenario has made a step.
    Rule = "rule";
    /// A disk changed its state.
    State = "state";
}

/// Adds a mark to a batch of [`MARKS`].
pub(crate) fn push(batch: &mut Batch, mark: &Mark) {
    column::fill(&mut batch.row(), mark);
}

/// The marks of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<Mark>, RecordingError> {
    let file = TableFile::open(path, &MARKS)?;
    let mut marks = Vec::new();
    let read = file.each_row(
        &mut Block::new(&MARKS),
        |_| true,
        |block, row| marks.extend(Mark::of_row(block, row)),
    );
    read.map_err(|flaw| flaw.of(path))?;
    Ok(marks)
}

impl Mark {
    /// The mark of a row; `None` if this version does not know the event.
    pub(crate) fn of_row(block: &Block, row: usize) -> Option<Mark> {
        let word = block.text(column::KIND, row)?;
        let text = |column| block.text(column, row).map(str::to_owned);
        Some(Mark {
            at_ns: block.int(column::AT, row)? as u64,
            clock_ns: block.int(column::CLOCK, row)? as u64,
            event: *Event::ALL.iter().find(|event| event.word() == word)?,
            device: text(column::DEVICE),
            n: block.int(column::N, row),
            text: text(column::TEXT),
        })
    }
}
