//! `snoop`: a line for each finished I/O, as bcc's biosnoop and perf-tools' iosnoop print, with the
//! waits that its time went into. Columns have fixed widths, so that lines are aligned as they come.

mod ios;
mod report;
#[cfg(test)]
mod tests;
mod zios;

use dashpot_rules::visible;
use serde::ser::Error;
use serde::{Serialize, Serializer};

use super::table::Room;
pub use ios::{IoTable, errno_name};
pub use report::SnoopReport;
pub use zios::ZioTable;

/// A line as JSON. `at_ns`, when it ended, counts from 1970, in simulations from their beginning.
/// The other fields are those of [`dashpot_observe::FinishedIo`], or of a finished zio of the API
/// with `device` for its disk.
#[derive(Serialize)]
#[serde(bound = "T: Serialize")]
pub struct At<'a, T> {
    /// When it ended.
    pub at_ns: u64,
    /// The finished I/O.
    #[serde(flatten, serialize_with = "with_device")]
    pub what: &'a T,
}

/// Renames the API's key `disk` to `device`, the key of every report.
fn with_device<T: Serialize, S: Serializer>(what: &&T, serializer: S) -> Result<S::Ok, S::Error> {
    let mut object = serde_json::to_value(what).map_err(S::Error::custom)?;
    if let Some(disk) = object.as_object_mut().and_then(|keys| keys.remove("disk")) {
        object["device"] = disk;
    }
    object.serialize(serializer)
}

/// I/Os that are missing. JSON: `{"lost": 12}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missed {
    /// How many there are.
    #[serde(rename = "lost")]
    pub missed: u64,
}

impl Missed {
    /// The sentence about them; `None` if there are none.
    pub fn remark(self) -> Option<String> {
        let missed = self.missed;
        (missed > 0).then(|| format!("{missed} I/Os are missing here: they came too fast."))
    }
}

/// The detail of a line, and its width.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Whether the line shows every wait, and the offset.
    pub wide: bool,
    /// The columns that a line may take.
    pub room: Room,
}

/// The side on which a column's words stand.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// A column: its title, its width, and the side on which short words stand.
struct Column {
    title: &'static str,
    width: usize,
    side: Side,
}

impl Column {
    const fn left(title: &'static str, width: usize) -> Column {
        Column {
            title,
            width,
            side: Side::Left,
        }
    }

    const fn right(title: &'static str, width: usize) -> Column {
        Column {
            title,
            width,
            side: Side::Right,
        }
    }
}

/// The width of the columns, including the gaps between them.
fn width(columns: &[Column]) -> usize {
    let widths = columns
        .iter()
        .map(|column| column.width.max(column.title.len()));
    widths.sum::<usize>() + columns.len().saturating_sub(1)
}

/// The width of the column of disks beside these others: that of the longest name, or as much as
/// the screen allows.
fn disk_width<'a>(names: impl Iterator<Item = &'a str>, others: &[Column], room: Room) -> usize {
    room.widest_name(width(others) + 1, names)
}

/// A line of words in their columns. Nothing is cut off: a long word shifts the rest.
fn line<'a>(columns: &[Column], words: impl IntoIterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for (at, (column, word)) in columns.iter().zip(words).enumerate() {
        let word = visible(word);
        let gap = if at == 0 { "" } else { " " };
        let width = column.width.max(column.title.len());
        line += gap;
        line += &match column.side {
            Side::Left => format!("{word:<width$}"),
            Side::Right => format!("{word:>width$}"),
        };
    }
    line.truncate(line.trim_end().len());
    line.push('\n');
    line
}

fn header(columns: &[Column]) -> String {
    line(columns, columns.iter().map(|column| column.title))
}

/// A time of day with milliseconds.
const TIME_WIDTH: usize = 12;
/// Bytes of a disk of up to a terabyte.
const OFFSET_WIDTH: usize = 12;
const SIZE_WIDTH: usize = 5;
/// What [`short_time`](dashpot_rules::short_time) needs.
const LATENCY_WIDTH: usize = 6;
