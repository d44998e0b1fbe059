//! The text about what rules have done to the data of a disk.

use dashpot_api::{ByteRange, DamagedIo, Faults};
use dashpot_rules::{format_size, nice_number, short_time};

use crate::table::{Column, Room, prose_within, table_within};

const WRONG: [Column; 2] = [Column::Figure("offset"), Column::Figure("wrong bytes")];

const IOS: [Column; 8] = [
    Column::Figure("age"),
    Column::Figure("rule"),
    Column::Text("damage"),
    Column::Text("op"),
    Column::Figure("offset"),
    Column::Figure("length"),
    Column::Figure("wrong at"),
    Column::Text("client"),
];

/// The text about the damage of a disk. It fits the screen.
pub fn text(room: Room, faults: &Faults) -> String {
    let mut text = prose_within(room, &sentences(faults));
    if !faults.wrong.is_empty() {
        let rows = faults.wrong.iter().map(wrong_row);
        text += &format!("\n{}", table_within(room, &WRONG, rows));
        text += &hidden(faults.places, faults.wrong.len(), "places");
    }
    if !faults.faults.is_empty() {
        let rows = faults.faults.iter().map(io_row);
        text += &format!("\n{}", table_within(room, &IOS, rows));
        text += &hidden(faults.damaged, faults.faults.len(), "older damaged I/Os");
    }
    text
}

fn sentences(faults: &Faults) -> String {
    let Faults { disk, damaged, .. } = faults;
    if *damaged == 0 {
        return format!("no rule has damaged the data of disk {disk}\n");
    }
    let ios = match damaged {
        1 => "1 I/O".to_owned(),
        _ => format!("{} I/Os", nice_number(*damaged)),
    };
    let wrong = match faults.wrong_bytes {
        0 => "none of its bytes are wrong now".to_owned(),
        bytes => format!("{} of its bytes are wrong now", nice_number(bytes)),
    };
    let mut text = format!("disk {disk}: rules damaged {ios}; {wrong}\n");
    if faults.read_by_pool_bytes > 0 {
        text += &format!(
            "its pool has read {} wrong bytes, and may have written copies of them: these are not listed\n",
            nice_number(faults.read_by_pool_bytes)
        );
    }
    if faults.full {
        text += "there are too many places with wrong bytes: rules leave the data alone until some are written again\n";
    }
    if faults.inexact {
        text += "some of these bytes have been written again: there was no room to note which\n";
    }
    text
}

fn hidden(all: u64, shown: usize, what: &str) -> String {
    match all.saturating_sub(shown as u64) {
        0 => String::new(),
        more => format!("{more} {what} are not shown; --top shows those that are kept\n"),
    }
}

fn wrong_row(range: &ByteRange) -> Vec<String> {
    vec![
        format_size(range.start_bytes),
        (range.end_bytes - range.start_bytes).to_string(),
    ]
}

fn io_row(io: &DamagedIo) -> Vec<String> {
    let wrong = io.wrong.iter().map(|range| format_size(range.start_bytes));
    vec![
        short_time(io.age_ns),
        io.rule.to_string(),
        io.damage.clone(),
        io.op.clone(),
        format_size(io.offset_bytes),
        format_size(io.length_bytes),
        wrong.collect::<Vec<_>>().join(","),
        io.client.clone(),
    ]
}
