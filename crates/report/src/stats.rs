//! `stats`: lists the words from which statistics can be made, and says for which devices each is known.

use std::fmt;

use dashpot_observe::{Dimension, Knows, Metric};
use dashpot_text::table::{Column, Room, prose_within, table_within};
use serde::Serialize;

use super::report::Page;

/// The words from which statistics can be made. JSON: `{"layers": ["disk", "volume", "fs", "kernel"],
/// "words": [{"word": "latency", "metric": true, "dimension": true, "of_dashpot": true, "of_the_kernel":
/// true, "meaning": "the time at the device"}, …]}`.
#[derive(Clone, Debug, Serialize)]
pub struct Stats {
    layers: [&'static str; 4],
    words: Vec<Word>,
    #[serde(skip)]
    room: Room,
}

#[derive(Clone, Debug, Serialize)]
struct Word {
    word: &'static str,
    /// Whether the word names something that a statistic can count or measure.
    metric: bool,
    /// Whether conditions and breakdowns can use the word.
    dimension: bool,
    /// Whether the word is known for dashpot's disks and volumes, including those in simulations.
    of_dashpot: bool,
    /// Whether the word is known for the kernel's disks.
    of_the_kernel: bool,
    meaning: &'static str,
}

impl Stats {
    /// All words from which statistics can be made.
    pub fn new(room: Room) -> Stats {
        let plain = Metric::PLAIN.into_iter().map(Word::of_plain);
        Stats {
            layers: ["disk", "volume", "fs", "kernel"],
            words: plain
                .chain(Dimension::ALL.into_iter().map(Word::of_dimension))
                .collect(),
            room,
        }
    }
}

impl Word {
    fn of_plain(metric: Metric) -> Word {
        Word {
            word: metric.word(),
            metric: true,
            dimension: false,
            of_dashpot: true,
            of_the_kernel: true,
            meaning: metric.meaning(),
        }
    }

    fn of_dimension(dimension: Dimension) -> Word {
        Word {
            word: dimension.word(),
            metric: Metric::all().any(|metric| metric == Metric::Of(dimension)),
            dimension: true,
            of_dashpot: dimension.is_known(Knows::Zios),
            of_the_kernel: dimension.is_known(Knows::Kernel),
            meaning: dimension.meaning(),
        }
    }

    fn row(&self) -> Vec<String> {
        let mark = |has| if has { "yes" } else { "-" }.to_owned();
        vec![
            self.word.to_owned(),
            mark(self.metric),
            mark(self.dimension),
            mark(self.of_dashpot),
            mark(self.of_the_kernel),
            self.meaning.to_owned(),
        ]
    }
}

impl Page for Stats {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&prose_within(self.room, FORM))?;
        let columns = COLUMNS.map(Column::Text);
        let rows = self.words.iter().map(Word::row);
        write!(f, "\n{}", table_within(self.room, &columns, rows))
    }
}

const COLUMNS: [&str; 6] = [
    "WORD",
    "metric",
    "dimension",
    "dashpot",
    "kernel",
    "meaning",
];

const FORM: &str = "\
A statistic is LAYER.METRIC[condition]...[DIMENSION], such as
  disk.ops[op=write][latency>=10ms][client]
LAYER is disk, volume, fs (sync calls), or kernel (the kernel's disks in a
recording that has a daemon's, too). A condition compares a dimension by =, !=,
>=, <=, > or <, or with a range (size=4K..64K); a name may be a glob
(device=vd*). DIMENSION breaks the I/Os down. --where takes the same conditions
with commas between them, and --by the same dimensions.
";

#[cfg(test)]
mod tests {
    use dashpot_text::table::assert_fits;

    use super::*;

    #[test]
    fn the_words_fit_a_terminal() {
        let room = Room(Some(80));
        let text = Stats::new(room).to_string();
        assert_fits(room, &text);
        let has =
            |line: &str| line.starts_with("latency") && line.ends_with("the time at the device");
        assert!(text.lines().any(has), "{text}");
    }
}
