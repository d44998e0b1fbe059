//! The labels to the left of a chart.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A label to the left of a row, flush right.
pub(super) fn gutter(area: Rect, row: u16, label: &str, buffer: &mut Buffer, style: Style) {
    if row < area.height {
        let width = usize::from(GUTTER) - 1;
        let text = format!("{label:>width$}");
        buffer.set_stringn(area.x, area.y + row, text, usize::from(area.width), style);
    }
}

/// The width for `IOPS 12345` and a space.
pub(super) const GUTTER: u16 = 12;
