//! Pictures: charts as SVG, without scripts or links to other files, in light and in dark colours; and a
//! latency histogram in characters, for a terminal.
//!
//! Lines differ in colour, dashes and width, so that readers can distinguish them without colours and also
//! where lines overlap. Logarithms come from `libm`, so that equal numbers give the same picture, byte for
//! byte, on every machine.

mod axis;
mod heat_svg;
mod heat_text;
mod latency;
mod series;
mod shade;
mod svg;
mod terminal;
mod ticks;

#[cfg(test)]
mod heat_tests;

pub use heat_svg::heat_svg;
pub use heat_text::{Screen, heat_text};
pub use latency::{LatencyChart, LatencySeries};
pub use series::{Line, Panel, SeriesChart};
pub use shade::Shades;
pub use terminal::histogram_text;
