//! A heat map in characters. Cells with hotter colours and denser characters have more I/Os.

use dashpot_engine::Duration;
use dashpot_rules::short_time;
use dashpot_text::chart::Shades;
use dashpot_text::heatmap::Map;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::Theme;
use super::gutter::gutter;

/// Draws a map from the bottom up. The bands of the map share the height, so some bands may be a row taller
/// than others.
pub(super) fn draw(map: &Map, area: Rect, buffer: &mut Buffer, theme: Theme) {
    let count = map.bands.len();
    let edge = |band: usize| area.bottom() - (band * usize::from(area.height) / count) as u16;
    let shades = Shades::new(map.most, CHARACTERS.len());
    let start = area.right().saturating_sub(map.columns.len() as u16);
    for (at, band) in map.bands.iter().enumerate() {
        let rows = edge(at + 1)..edge(at);
        // The name of a band is its lower edge. The lowest band always has a name.
        let round = band.round_ns.map(|ns| Duration::from_nanos(ns).to_string());
        let name = round.or_else(|| (at == 0).then(|| short_time(band.from_ns)));
        if let (Some(name), false) = (name, rows.is_empty()) {
            gutter(area, rows.end - 1 - area.y, &name, buffer, theme.faint());
        }
        for (x, column) in (start..area.right()).zip(&map.columns) {
            let Some(shade) = shades.of(column.counts[at]) else {
                continue;
            };
            for y in rows.clone() {
                let cell = &mut buffer[(x, y)];
                cell.set_char(CHARACTERS[shade])
                    .set_style(theme.heat(shade));
            }
        }
    }
}

const CHARACTERS: [char; 4] = ['░', '▒', '▓', '█'];
