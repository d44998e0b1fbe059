//! Pictures: SVG without scripts or references, for pages and for browsers by themselves, in light
//! and in dark; and a latency histogram in the characters of a terminal.
//!
//! Lines differ in colour, in dashes and in width, so that they are told apart without colours and
//! where they lie on top of each other. Logarithms
//! come from `libm`: equal numbers give equal bytes on every machine.

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

pub(crate) use heat_svg::heat_svg;
pub(crate) use heat_text::{Screen, heat_text};
pub(crate) use latency::{LatencyChart, LatencySeries};
pub(crate) use series::{Line, Panel, SeriesChart};
pub(crate) use shade::Shades;
pub(crate) use terminal::histogram_text;
