//! `txgs`: the transaction groups of a pool, one line each.
//!
//! Source: the columns, widths and letters of OpenZFS's kstat `txgs` (2.2).
//!
//! Differences: each of the times is 0 until its phase has ended. qtime is always 0, because a closed txg is
//! quiesced at once. The kstat's first line, with counters of the kstat itself, is left out. A narrow screen
//! shows only those columns that fit into 80 characters.

use std::fmt;

use clap::Args;
use dashpot_cli::reports::{DeviceArgs, OutputArgs};
use dashpot_engine::Duration;
use dashpot_engine::pool::{TxgState, TxgStats};
use dashpot_observe::{Question, Schedule, Seen, Subject};
use dashpot_rules::ParseError;
use dashpot_text::surface::Surface;
use dashpot_text::table::Room;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::asked::{Over, ReportRequest, Shared};
use crate::report::{Page, Pages, Report, Tells};

/// Show the transaction groups of pools, as OpenZFS's txgs does
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples: the last hundred of a daemon's pool; of a simulated pool\n  \
    dashpot txgs tank\n  \
    dashpot sim lab.toml --report txgs"
)]
pub struct TxgsArgs {
    /// Only this pool
    pub pool: Option<String>,
    /// Show all columns, even on a narrow terminal
    #[arg(long)]
    pub wide: bool,
    /// The formats and the HTML file.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl ReportRequest for TxgsArgs {
    fn report(&self, _: &Over) -> Result<Box<dyn Report>, ParseError> {
        Ok(Box::new(TxgsReport { wide: self.wide }))
    }

    fn shared(&self) -> Shared<'_> {
        Shared::of(Ok(DeviceArgs::named(self.pool.as_slice())), &self.output)
    }

    fn is_one_document(&self) -> bool {
        true
    }
}

/// The report: the transaction groups of pools as they are now, or at the end of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct TxgsReport {
    /// Whether even a narrow terminal gets all columns.
    pub wide: bool,
}

impl Report for TxgsReport {
    fn question(&self) -> Question {
        Question::of(Subject::Pools)
    }

    fn schedule(&self) -> Schedule {
        Schedule {
            interval: Duration::MAX,
            count: Some(0),
            since_start: true,
        }
    }

    fn tells(&self) -> Tells {
        Tells::LENGTH
    }

    fn take(&mut self, seen: &Seen, surface: &Surface) -> Pages {
        let titled = seen.pools.len() > 1;
        let pages = seen.pools.iter().map(|pool| Txgs {
            pool: titled.then(|| pool.name.clone()),
            txgs: pool.txgs.clone(),
            room: surface.room(self.wide),
        });
        pages.map(|page| Box::new(page) as Box<dyn Page>).collect()
    }
}

/// The transaction groups of a pool, the oldest first. JSON: a list of `{"txg": 4, "birth_ns": …,
/// "state": "C", "dirty_bytes": …, "read_bytes": …, "written_bytes": …, "reads": …, "writes": …,
/// "open_ns": …, "quiesce_ns": …, "wait_ns": …, "sync_ns": …}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Txgs {
    /// The pool's name, if the text shows it above the table.
    pub pool: Option<String>,
    /// The transaction groups, the oldest first.
    pub txgs: Vec<TxgStats>,
    /// The width that the text may have.
    pub room: Room,
}

struct Column {
    title: &'static str,
    width: usize,
    /// Whether a narrow screen shows the column.
    narrow: bool,
    cell: fn(&TxgStats) -> String,
}

const fn column(title: &'static str, width: usize, cell: fn(&TxgStats) -> String) -> Column {
    Column {
        title,
        width,
        narrow: true,
        cell,
    }
}

/// A column for wide screens only.
const fn wide(title: &'static str, width: usize, cell: fn(&TxgStats) -> String) -> Column {
    Column {
        narrow: false,
        ..column(title, width, cell)
    }
}

/// The kstat's columns and their widths.
const COLUMNS: [Column; 12] = [
    column("txg", 8, |txg| txg.txg.to_string()),
    wide("birth", 16, |txg| txg.birth.as_nanos().to_string()),
    column("state", 5, |txg| letter(txg.state).to_string()),
    column("ndirty", 12, |txg| txg.dirty.to_string()),
    wide("nread", 12, |txg| txg.disks.bytes_read.to_string()),
    column("nwritten", 12, |txg| txg.disks.bytes_written.to_string()),
    wide("reads", 8, |txg| txg.disks.reads.to_string()),
    wide("writes", 8, |txg| txg.disks.writes.to_string()),
    column("otime", 12, |txg| txg.open.as_nanos().to_string()),
    wide("qtime", 12, |_| QUIESCE_NS.to_string()),
    column("wtime", 12, |txg| txg.wait.as_nanos().to_string()),
    column("stime", 12, |txg| txg.sync.as_nanos().to_string()),
];

impl fmt::Display for Txgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = COLUMNS.iter().map(|column| column.width + 1);
        let is_narrow = !self.room.has(widths.sum::<usize>() - 1);
        let shown = COLUMNS.iter().filter(|column| column.narrow || !is_narrow);
        let columns: Vec<&Column> = shown.collect();
        let line = |cell: &dyn Fn(&Column) -> String| {
            let cells = columns.iter();
            let cells = cells.map(|column| format!("{:<1$}", cell(column), column.width));
            cells.collect::<Vec<_>>().join(" ")
        };
        if let Some(pool) = &self.pool {
            writeln!(f, "{pool}:")?;
        }
        writeln!(f, "{}", line(&|column| column.title.to_owned()))?;
        let mut txgs = self.txgs.iter();
        txgs.try_for_each(|txg| writeln!(f, "{}", line(&|column| (column.cell)(txg))))
    }
}

/// How long a closed txg waits for the writes that belong to it.
const QUIESCE_NS: u64 = 0;

fn letter(state: TxgState) -> char {
    match state {
        TxgState::Open => 'O',
        TxgState::Quiesced => 'W',
        TxgState::Syncing => 'S',
        TxgState::Committed => 'C',
    }
}

#[derive(Serialize)]
struct TxgObject {
    txg: u64,
    birth_ns: u64,
    state: char,
    dirty_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
    reads: u64,
    writes: u64,
    open_ns: u64,
    quiesce_ns: u64,
    wait_ns: u64,
    sync_ns: u64,
}

impl TxgObject {
    fn of(txg: &TxgStats) -> TxgObject {
        TxgObject {
            txg: txg.txg,
            birth_ns: txg.birth.as_nanos(),
            state: letter(txg.state),
            dirty_bytes: txg.dirty,
            read_bytes: txg.disks.bytes_read,
            written_bytes: txg.disks.bytes_written,
            reads: txg.disks.reads,
            writes: txg.disks.writes,
            open_ns: txg.open.as_nanos(),
            quiesce_ns: QUIESCE_NS,
            wait_ns: txg.wait.as_nanos(),
            sync_ns: txg.sync.as_nanos(),
        }
    }
}

impl Page for Txgs {
    fn json(&self) -> Option<&dyn erased_serde::Serialize> {
        Some(self)
    }
}

impl Serialize for Txgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.txgs.len()))?;
        for txg in &self.txgs {
            list.serialize_element(&TxgObject::of(txg))?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use dashpot_engine::pool::{Traffic, TxgState, TxgStats};
    use dashpot_engine::{Duration, Instant};
    use dashpot_text::table::{Room, assert_fits};

    use super::Txgs;
    use expect_test::expect;

    fn txg(txg: u64, state: TxgState) -> TxgStats {
        TxgStats {
            txg,
            birth: Instant::from_nanos(5_000_000_000 * txg),
            state,
            dirty: 524_288_000,
            left: 0,
            disks: Traffic {
                reads: 3,
                bytes_read: 24_576,
                writes: 64_000,
                bytes_written: 524_288_000,
            },
            open: Duration::from_millis(5_000),
            wait: Duration::ZERO,
            sync: Duration::from_millis(4_999),
        }
    }

    fn all(txgs: Vec<TxgStats>) -> Txgs {
        Txgs {
            pool: None,
            txgs,
            room: Room::UNBOUNDED,
        }
    }

    #[test]
    fn a_narrow_screen_has_fewer_columns() {
        let narrow = Txgs {
            room: Room(Some(80)),
            ..all(vec![txg(4, TxgState::Committed)])
        };
        expect![[r#"
            txg      state ndirty       nwritten     otime        wtime        stime       |
            4        C     524288000    524288000    5000000000   0            4999000000  |
        "#]]
        .assert_eq(&narrow.to_string().replace('\n', "|\n"));
        assert_fits(narrow.room, &narrow.to_string());
    }

    #[test]
    fn lines_are_those_of_the_kstat() {
        let open = TxgStats {
            dirty: 0,
            disks: Traffic::default(),
            open: Duration::ZERO,
            sync: Duration::ZERO,
            ..txg(5, TxgState::Open)
        };
        // Like the kstat, the text has spaces at the ends of lines.
        let text = all(vec![txg(4, TxgState::Committed), open]).to_string();
        expect![[r#"
            txg      birth            state ndirty       nread        nwritten     reads    writes   otime        qtime        wtime        stime       |
            4        20000000000      C     524288000    24576        524288000    3        64000    5000000000   0            0            4999000000  |
            5        25000000000      O     0            0            0            0        0        0            0            0            0           |
        "#]]
        .assert_eq(&text.replace('\n', "|\n"));
    }

    #[test]
    fn a_letter_says_how_far_it_is() {
        use TxgState::{Committed, Open, Quiesced, Syncing};
        let states = [Open, Quiesced, Syncing, Committed];
        let text = all(states.map(|state| txg(4, state)).into()).to_string();
        let letters = text.lines().skip(1).map(|line| &line[26..27]);
        assert_eq!(letters.collect::<String>(), "OWSC");
    }

    #[test]
    fn json_has_units() {
        let json = serde_json::to_value(all(vec![txg(4, TxgState::Committed)])).unwrap();
        assert_eq!(json[0]["sync_ns"], 4_999_000_000_u64);
        assert_eq!(json[0]["state"], "C");
    }
}
