//! The clients of the selected disk.

use ratatui::style::Style;

use super::columns::{Cell, Column};
use super::figures::{known, time};
use crate::frame::ClientFrame;

pub(super) const COLUMNS: [Column; 4] = [
    Column::text("client", 20, 0).growing(),
    Column::figure("conns", 5, 0),
    Column::figure("ops/s", 6, 0),
    Column::figure("p99", 6, 0),
];

pub(super) fn row(client: &ClientFrame) -> Vec<Cell> {
    let plain = |text: String| (text, Style::new());
    vec![
        plain(client.name.clone()),
        plain(
            client
                .connections
                .map_or_else(|| "-".to_owned(), |n| n.to_string()),
        ),
        plain(known(client.per_second)),
        plain(time(client.p99_ns)),
    ]
}
