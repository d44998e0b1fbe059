//! The last transaction groups of a pool, the newest first.

use dashpot_engine::Duration;
use dashpot_engine::pool::{TxgState, TxgStats};
use dashpot_rules::nice_number;
use ratatui::style::Style;

use super::Theme;
use super::columns::{Cell, Column};
use super::figures::{time, whole};

pub(super) const COLUMNS: [Column; 9] = [
    Column::figure("txg", 6, 0),
    Column::text("state", 9, 0),
    Column::figure("dirty", 6, 0),
    Column::figure("left", 6, 0),
    Column::figure("open", 7, 1),
    Column::figure("waited", 7, 2),
    Column::figure("sync", 7, 0),
    Column::figure("written", 7, 1),
    Column::figure("kB/s", 7, 2),
];

pub(super) fn row(txg: &TxgStats, theme: Theme) -> Vec<Cell> {
    let plain = |text: String| (text, Style::new());
    let unless_none = |span: Duration| time(Some(span.as_nanos()).filter(|ns| *ns > 0));
    let syncs = matches!(txg.state, TxgState::Syncing | TxgState::Committed);
    let of_sync = |text: String| {
        if syncs {
            plain(text)
        } else {
            plain("-".to_owned())
        }
    };
    let seconds = txg.sync.as_nanos() as f64 / 1e9;
    let written = txg.disks.bytes_written;
    vec![
        plain(txg.txg.to_string()),
        state(txg.state, theme),
        of_sync(nice_number(txg.dirty)),
        plain(nice_number(txg.left)),
        plain(unless_none(txg.open)),
        plain(unless_none(txg.wait)),
        plain(unless_none(txg.sync)),
        of_sync(nice_number(written)),
        if seconds > 0.0 {
            of_sync(whole(written as f64 / 1_024.0 / seconds))
        } else {
            plain("-".to_owned())
        },
    ]
}

fn state(state: TxgState, theme: Theme) -> Cell {
    let (word, style) = match state {
        TxgState::Open => ("open", theme.good()),
        TxgState::Quiesced => ("quiesced", theme.warning()),
        TxgState::Syncing => ("syncing", theme.warning()),
        TxgState::Committed => ("committed", theme.faint()),
    };
    (word.to_owned(), style)
}
