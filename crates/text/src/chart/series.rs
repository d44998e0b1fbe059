//! Figures over time, in panels one below another, with a common time axis.

use super::axis::Linear;
use super::svg::{Anchor, LEFT, RIGHT, Svg, legend_height};

/// A picture of figures over time.
pub struct SeriesChart {
    /// The title above the picture.
    pub title: String,
    /// A note on the time that the picture covers, and on the part of this time that counts.
    pub note: String,
    /// The length of the warm-up in seconds. Latencies in the warm-up do not count.
    pub warmup: f64,
    /// The names of the lines, the same in every panel.
    pub names: Vec<String>,
    /// The panels, from the top.
    pub panels: Vec<Panel>,
    /// The time at the end of the axis, in seconds.
    pub seconds: f64,
}

/// One figure over time, with a line for each series.
pub struct Panel {
    /// The name of the figure, and its unit.
    pub title: String,
    /// The lines, one for each name.
    pub lines: Vec<Line>,
}

/// Times in seconds, each with the figure at that time.
pub type Line = Vec<(f64, f64)>;

const PANEL_HEIGHT: f64 = 140.0;
const GAP: f64 = 44.0;
/// The height below the last panel, for the times along the axis and the title of the axis.
const FOOT: f64 = 56.0;

impl SeriesChart {
    /// The picture as SVG.
    pub fn svg(&self) -> String {
        let head = 50.0 + legend_height(&self.names);
        let panels = self.panels.len() as f64;
        let height = head + panels * (PANEL_HEIGHT + GAP) + FOOT;
        let mut svg = Svg::new(height, &self.title);
        svg.label("title", LEFT, 28.0, Anchor::Start, &self.title);
        svg.label("tick", LEFT, 49.0, Anchor::Start, &self.note);
        svg.legend(76.0, &self.names);
        let x = Linear::up_to(self.seconds, 8.0, LEFT, RIGHT);
        let mut bottom = head;
        for panel in &self.panels {
            let top = bottom + GAP;
            bottom = top + PANEL_HEIGHT;
            svg.rect(
                "warm",
                (LEFT, top),
                (x.place(self.warmup) - LEFT, bottom - top),
            );
            draw_panel(&mut svg, panel, &x, top, bottom);
        }
        for (second, name) in x.ticks() {
            svg.label(
                "tick",
                x.place(second),
                bottom + 20.0,
                Anchor::Middle,
                &name,
            );
        }
        svg.label(
            "",
            (LEFT + RIGHT) / 2.0,
            bottom + 42.0,
            Anchor::Middle,
            "time (s)",
        );
        svg.finish()
    }
}

fn draw_panel(svg: &mut Svg, panel: &Panel, x: &Linear, top: f64, bottom: f64) {
    let values = panel.lines.iter().flatten().map(|point| point.1);
    let y = Linear::new(values.fold(0.0, f64::max), 4.0, bottom, top);
    svg.label("", LEFT, top - 9.0, Anchor::Start, &panel.title);
    for (value, name) in y.ticks() {
        let place = y.place(value);
        svg.straight("grid", (LEFT, place), (RIGHT, place));
        svg.label("tick", LEFT - 8.0, place + 4.0, Anchor::End, &name);
    }
    for (second, _) in x.ticks() {
        svg.straight("grid", (x.place(second), top), (x.place(second), bottom));
    }
    for (at, line) in panel.lines.iter().enumerate() {
        let place = |(second, value): &(f64, f64)| (x.place(*second), y.place(*value));
        let points: Vec<(f64, f64)> = line.iter().map(place).collect();
        svg.line((at, panel.lines.len()), &points);
    }
    svg.frame(top, bottom);
}
