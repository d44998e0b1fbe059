//! `sim --tunables`: prints the engine's table of a pool's tunables.

use dashpot_engine::pool::{Tunable, TunableInfo};
use dashpot_lab::DEFAULT_RAM;
use dashpot_output::{print, print_json};
use dashpot_rules::format_tunable;
use dashpot_text::table::{Column, table};
use serde::Serialize;

/// A row. JSON: `{"name": "zfs_delay_scale", "default": "500us", "min": "1ns", "max": "1s", "help":
/// "The delay …"}`. Values are written as in a lab file.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    default: String,
    min: String,
    max: String,
    help: &'static str,
}

pub(super) fn list(json: bool) -> anyhow::Result<()> {
    let rows = Tunable::ALL.iter().map(|tunable| row(tunable.info()));
    if json {
        return print_json(&rows.collect::<Vec<_>>());
    }
    let columns = [
        Column::Text("tunable"),
        Column::Figure("default"),
        Column::Figure("from"),
        Column::Figure("to"),
        Column::Text("what it does"),
    ];
    let cells = rows.map(|row| {
        let name = row.name.to_owned();
        vec![name, row.default, row.min, row.max, row.help.to_owned()]
    });
    print(&table(&columns, cells))
}

fn row(info: &'static TunableInfo) -> Row {
    let words = |value| format_tunable(value, info.unit);
    Row {
        name: info.name,
        default: words(info.default(DEFAULT_RAM)),
        min: words(info.min),
        max: words(info.max),
        help: info.help,
    }
}
