//! `txgs`: the transaction groups of a pool, one line each.
//!
//! Source: the columns, widths and letters of OpenZFS's kstat `txgs` (2.2). Difference: times that
//! have not ended are 0 until they have, qtime is always 0 (a closed txg is quiesced), and the line of
//! the kstat's own counters is left out.

use std::fmt;

use dashpot_engine::pool::{TxgState, TxgStats};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

/// The transaction groups of a pool, the oldest first. JSON: a list of `{"txg": 4, "birth_ns": …,
/// "state": "C", "dirty_bytes": …, "read_bytes": …, "written_bytes": …, "reads": …, "writes": …,
/// "open_ns": …, "quiesce_ns": …, "wait_ns": …, "sync_ns": …}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Txgs(pub(crate) Vec<TxgStats>);

/// The kstat's columns and their widths.
const COLUMNS: [(&str, usize); 12] = [
    ("txg", 8),
    ("birth", 16),
    ("state", 5),
    ("ndirty", 12),
    ("nread", 12),
    ("nwritten", 12),
    ("reads", 8),
    ("writes", 8),
    ("otime", 12),
    ("qtime", 12),
    ("wtime", 12),
    ("stime", 12),
];

impl fmt::Display for Txgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_line(f, COLUMNS.map(|(title, _)| title.to_owned()))?;
        self.0.iter().try_for_each(|txg| write_line(f, cells(txg)))
    }
}

fn write_line(f: &mut fmt::Formatter<'_>, cells: [String; COLUMNS.len()]) -> fmt::Result {
    for (at, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
        let blank = if at == 0 { "" } else { " " };
        write!(f, "{blank}{cell:<width$}")?;
    }
    writeln!(f)
}

fn cells(txg: &TxgStats) -> [String; COLUMNS.len()] {
    [
        txg.txg.to_string(),
        txg.birth.as_nanos().to_string(),
        letter(txg.state).to_string(),
        txg.dirty.to_string(),
        txg.disks.bytes_read.to_string(),
        txg.disks.bytes_written.to_string(),
        txg.disks.reads.to_string(),
        txg.disks.writes.to_string(),
        txg.open.as_nanos().to_string(),
        QUIESCE_NS.to_string(),
        txg.wait.as_nanos().to_string(),
        txg.sync.as_nanos().to_string(),
    ]
}

/// How long a closed txg waits for writes that have joined it.
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

impl Serialize for Txgs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for txg in &self.0 {
            list.serialize_element(&TxgObject::of(txg))?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::Txgs;
    use dashpot_engine::pool::{Traffic, TxgState, TxgStats};
    use dashpot_engine::{Duration, Instant};
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

    #[test]
    fn lines_are_those_of_the_kstat() {
        let open = TxgStats {
            dirty: 0,
            disks: Traffic::default(),
            open: Duration::ZERO,
            sync: Duration::ZERO,
            ..txg(5, TxgState::Open)
        };
        // The blanks at the ends of lines are the kstat's.
        let text = Txgs(vec![txg(4, TxgState::Committed), open]).to_string();
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
        let text = Txgs(states.map(|state| txg(4, state)).into()).to_string();
        let letters = text.lines().skip(1).map(|line| &line[26..27]);
        assert_eq!(letters.collect::<String>(), "OWSC");
    }

    #[test]
    fn json_has_units() {
        let json = serde_json::to_value(Txgs(vec![txg(4, TxgState::Committed)])).unwrap();
        assert_eq!(json[0]["sync_ns"], 4_999_000_000_u64);
        assert_eq!(json[0]["state"], "C");
    }
}
