//! A table of finished I/Os, with a line for each.

use dashpot_observe::FinishedIo;
use dashpot_rules::visible;
use dashpot_text::clock::time_of_day_ms;
use dashpot_text::table::Room;

/// The side on which a column aligns its words.
#[derive(Clone, Copy)]
enum Side {
    Left,
    Right,
}

/// A column, and the function that gives its word for an I/O.
pub(super) struct Column {
    title: &'static str,
    width: usize,
    side: Side,
    word: Word,
    /// The room for a name: a longer name loses its middle. `None` for a column whose words are never
    /// shortened.
    room: Option<Room>,
}

type Word = Box<dyn Fn(&FinishedIo) -> String>;

/// A table, whose columns keep their widths.
pub(super) struct Table(Vec<Column>);

impl Column {
    pub(super) fn left(
        title: &'static str,
        width: usize,
        word: impl Fn(&FinishedIo) -> String + 'static,
    ) -> Column {
        Column::new(title, width, Side::Left, Box::new(word))
    }

    /// A column of names, which are shortened if the line has no room for them.
    pub(super) fn name(
        title: &'static str,
        width: usize,
        word: impl Fn(&FinishedIo) -> String + 'static,
    ) -> Column {
        Column {
            room: Some(Room::UNBOUNDED),
            ..Column::left(title, width, word)
        }
    }

    pub(super) fn right(
        title: &'static str,
        width: usize,
        word: impl Fn(&FinishedIo) -> String + 'static,
    ) -> Column {
        Column::new(title, width, Side::Right, Box::new(word))
    }

    fn new(title: &'static str, width: usize, side: Side, word: Word) -> Column {
        Column {
            title,
            width: width.max(title.len()),
            side,
            word,
            room: None,
        }
    }

    /// A word in its column. A word that is too long and is not shortened shifts the words after it.
    fn pad(&self, word: &str) -> String {
        let (word, width) = (visible(word), self.width);
        let word = match self.room {
            Some(room) => room.name_beside(0, &word).into(),
            None => word,
        };
        match self.side {
            Side::Left => format!("{word:<width$}"),
            Side::Right => format!("{word:>width$}"),
        }
    }
}

impl Table {
    /// A table of I/Os on disks with these names. The time of day and the disk come before the other columns.
    pub(super) fn new<'a>(
        names: impl Iterator<Item = &'a str>,
        others: Vec<Column>,
        room: Room,
        zone_ns: i64,
    ) -> Table {
        let time = move |io: &FinishedIo| time_of_day_ms(io.at_ns.saturating_add_signed(zone_ns));
        let mut columns = vec![Column::left("TIME", TIME_WIDTH, time)];
        columns.extend(others);
        let taken = width(&columns) + 1;
        let disk = move |io: &FinishedIo| room.name_beside(taken, &io.device);
        columns.insert(
            1,
            Column::left("DISK", room.widest_name(taken, names), disk),
        );
        let taken = width(&columns);
        for column in columns.iter_mut().filter(|column| column.room.is_some()) {
            column.room = Some(room.beside(taken - column.width));
        }
        Table(columns)
    }

    /// The line of titles.
    pub(super) fn header(&self) -> String {
        self.joined(|column| column.pad(column.title))
    }

    /// The line of an I/O.
    pub(super) fn line(&self, io: &FinishedIo) -> String {
        self.joined(|column| column.pad(&(column.word)(io)))
    }

    fn joined(&self, word: impl Fn(&Column) -> String) -> String {
        let words: Vec<String> = self.0.iter().map(word).collect();
        let mut line = words.join(" ");
        line.truncate(line.trim_end().len());
        line.push('\n');
        line
    }
}

/// The width of the columns, including the gaps between them.
fn width(columns: &[Column]) -> usize {
    let widths = columns.iter().map(|column| column.width);
    widths.sum::<usize>() + columns.len().saturating_sub(1)
}

/// The width of a time of day with milliseconds.
const TIME_WIDTH: usize = 12;
