//! A heat map as SVG. When the user points at a cell, the picture shows the cell's time, latencies and
//! count, and the percentiles at the cell.

use std::fmt::Write;

use dashpot_rules::{short_time, thousands};

use super::latency::decade_name;
use super::shade::Shades;
use super::svg::{Anchor, LEFT, RIGHT, Svg};
use super::ticks::ticks;
use crate::clock::time_of_day_ms;
use crate::heatmap::{Band, BandPlace, Cells, HeatMap, Map, Size};

/// The shades on a light page, from one I/O to the highest count. A darker shade means more I/Os.
const LIGHT: [&str; SHADES] = [
    "fbd267", "fdb94a", "fd9c3c", "fb7a32", "f3562a", "e03322", "c31524", "9c0a2a", "730727",
    "47051b",
];
/// The shades on a dark page. A brighter shade means more I/Os.
const DARK: [&str; SHADES] = [
    "5a2a86", "7b2f8e", "9d3390", "c03a88", "dd4c79", "f0666b", "fa8763", "fdab6e", "fdd08a",
    "fcf4b6",
];
const SHADES: usize = 10;
const GROUNDS: [&str; 2] = ["f3f5f7", "171c23"];

const TOP: f64 = 84.0;
const MAP_HEIGHT: f64 = 400.0;
const BAND_HEIGHT: std::ops::RangeInclusive<f64> = 5.0..=16.0;
/// The height below the map, for the times along the axis and the title of the axis.
const FOOT: f64 = 58.0;
const COLUMN_WIDTH_MIN: f64 = 3.0;
const TICK_WIDTH: f64 = 84.0;
const RAMP_CELL: (f64, f64) = (18.0, 12.0);

/// The picture. Equal maps give the same SVG, byte for byte.
pub fn heat_svg(heat: &HeatMap) -> String {
    Picture::new(heat).svg()
}

struct Picture<'a> {
    heat: &'a HeatMap,
    map: Map,
    shades: Shades,
    column_width: f64,
    band_height: f64,
    bottom: f64,
}

impl<'a> Picture<'a> {
    fn new(heat: &'a HeatMap) -> Picture<'a> {
        let room = Size {
            columns: ((RIGHT - LEFT) / COLUMN_WIDTH_MIN) as usize,
            bands: (MAP_HEIGHT / BAND_HEIGHT.start()) as usize,
        };
        let map = Map::new(heat, room);
        let bands = map.bands.len() as f64;
        let band_height = (MAP_HEIGHT / bands).clamp(*BAND_HEIGHT.start(), *BAND_HEIGHT.end());
        Picture {
            heat,
            shades: Shades::new(map.most, SHADES),
            column_width: (RIGHT - LEFT) / map.columns.len().max(1) as f64,
            band_height,
            bottom: TOP + band_height * bands,
            map,
        }
    }

    fn svg(&self) -> String {
        let mut svg = Svg::new(self.bottom + FOOT, &self.heat.title);
        svg.style(&style());
        svg.label("title", LEFT, 28.0, Anchor::Start, &self.heat.title);
        self.draw_legend(&mut svg);
        svg.rect("ground", (LEFT, TOP), (RIGHT - LEFT, self.bottom - TOP));
        self.draw_latencies(&mut svg);
        self.draw_times(&mut svg);
        for (at, column) in self.map.columns.iter().enumerate() {
            self.draw_column(&mut svg, at, column);
        }
        svg.frame(TOP, self.bottom);
        svg.finish()
    }

    fn draw_legend(&self, svg: &mut Svg) {
        let count: u64 = self.map.columns.iter().map(Cells::count).sum();
        let words = format!(
            "{} I/Os, a column is {}{}; in a cell: 1",
            thousands(count),
            self.heat.lasts(self.map.joined),
            self.heat.missed(),
        );
        let y = 54.0;
        svg.label("tick", LEFT, y, Anchor::Start, &words);
        let (width, height) = RAMP_CELL;
        let from = LEFT + LETTER_WIDTH * (words.chars().count() + 1) as f64;
        for shade in 0..SHADES {
            let x = from + width * shade as f64;
            svg.rect(&format!("h{shade}"), (x, y - height + 1.0), RAMP_CELL);
        }
        let x = from + width * SHADES as f64 + 6.0;
        svg.label("tick", x, y, Anchor::Start, &thousands(self.shades.most()));
    }

    fn draw_latencies(&self, svg: &mut Svg) {
        let middle = self.band_height / 2.0;
        for (at, band) in self.map.bands.iter().enumerate() {
            let Some(name) = band.round_ns.map(|ns| decade_name(ns as f64)) else {
                continue;
            };
            let (edge, words) = match band.place {
                BandPlace::Within => (self.edge(at), name),
                BandPlace::Above => (self.edge(at) - middle, format!("> {name}")),
                BandPlace::Below => (self.edge(at) - middle, format!("< {name}")),
            };
            if !self.map.is_named_below(at) {
                svg.label("tick", LEFT - 8.0, edge + 4.0, Anchor::End, &words);
            }
            if band.place == BandPlace::Within {
                svg.straight("grid", (LEFT, edge), (RIGHT, edge));
            }
        }
        svg.upright(20.0, (TOP + self.bottom) / 2.0, "latency");
    }

    fn draw_times(&self, svg: &mut Svg) {
        let starts: Vec<u64> = self.map.columns.iter().map(|one| self.local(one)).collect();
        let apart = libm::ceil(TICK_WIDTH / self.column_width) as usize;
        for (column, name) in ticks(&starts, apart) {
            let x = self.place(column);
            svg.straight("frame", (x, self.bottom), (x, self.bottom + 5.0));
            svg.label("tick", x, self.bottom + 20.0, Anchor::Start, &name);
        }
        let lasts = self.heat.lasts(self.map.joined);
        let words = format!("time ({lasts} a column{})", self.heat.missed());
        svg.label(
            "",
            (LEFT + RIGHT) / 2.0,
            self.bottom + 44.0,
            Anchor::Middle,
            &words,
        );
    }

    fn draw_column(&self, svg: &mut Svg, at: usize, column: &Cells) {
        // Neighbouring cells must have exactly the same number for their common edge.
        let (left, right) = (tenth(self.place(at)), tenth(self.place(at + 1)));
        let mut below = 0;
        for (band, &count) in column.counts.iter().enumerate() {
            below += count;
            if let Some(shade) = self.shades.of(count) {
                let (top, bottom) = (tenth(self.edge(band + 1)), tenth(self.edge(band)));
                svg.cell(
                    &format!("h{shade}"),
                    (left, top),
                    (right - left, bottom - top),
                    &self.words(column, &self.map.bands[band], count, below),
                );
            }
        }
    }

    /// The words that a cell shows: its time, its latencies, its count, and how many I/Os of the column took
    /// no longer than the cell's longest latency.
    fn words(&self, column: &Cells, band: &Band, count: u64, below: u64) -> String {
        let from = short_time(band.from_ns);
        let range = match band.to_ns {
            u64::MAX => format!("{from} or more"),
            to => format!("{from} to {}", short_time(to + 1)),
        };
        let all = column.count();
        let percent = |part: u64| 100.0 * part as f64 / all.max(1) as f64;
        format!(
            "{}, {range}: {} of {} I/Os ({:.2} %); up to here {} ({:.2} %)",
            time_of_day_ms(self.local(column)),
            thousands(count),
            thousands(all),
            percent(count),
            thousands(below),
            percent(below),
        )
    }

    fn local(&self, column: &Cells) -> u64 {
        column.start_ns.saturating_add_signed(self.heat.zone_ns)
    }

    /// The place where a column begins.
    fn place(&self, column: usize) -> f64 {
        LEFT + self.column_width * column as f64
    }

    /// The place where a band begins, at its lower edge.
    fn edge(&self, band: usize) -> f64 {
        self.bottom - self.band_height * band as f64
    }
}

fn style() -> String {
    let [light, dark] = GROUNDS;
    let mut style = format!(".ground{{fill:#{light}}}");
    let mut dark = format!(".ground{{fill:#{dark}}}");
    for (at, (on_light, on_dark)) in LIGHT.iter().zip(DARK).enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(style, ".h{at}{{fill:#{on_light}}}");
        let _ = write!(dark, ".h{at}{{fill:#{on_dark}}}");
    }
    let hover = ".cell:hover{stroke:#0b62a8;stroke-width:2}";
    format!(
        "{style}.cell{{shape-rendering:crispEdges}}{hover}@media(prefers-color-scheme:dark){{{dark}}}"
    )
}

fn tenth(place: f64) -> f64 {
    libm::round(place * 10.0) / 10.0
}

/// The width of most letters of the legend in most fonts.
const LETTER_WIDTH: f64 = 6.9;
