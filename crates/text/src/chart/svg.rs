//! The common parts of all pictures: their style and their few shapes.

use std::fmt::Write;

/// Width of every picture.
pub(super) const WIDTH: f64 = 920.0;
/// The left edge of the area between the axes.
pub(super) const LEFT: f64 = 104.0;
/// The right edge of the area between the axes.
pub(super) const RIGHT: f64 = WIDTH - 24.0;

/// How many styles of lines there are. With more lines, styles repeat.
const STYLES: usize = 6;

const STYLE: &str = "\
.paper{fill:#fff}.frame{fill:none;stroke:#8a8f98}.grid{stroke:#e3e5e8}\
text{font:14px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#1f2328}\
.title{font-size:17px;font-weight:600}.tick{font-size:13px;fill:#4d545d}\
.line{fill:none;stroke-width:2;stroke-linejoin:round}.area{stroke:none;fill-opacity:.13}\
.mean{stroke-width:1.6;stroke-dasharray:2 4}.warm{fill:#8a8f98;fill-opacity:.14;stroke:none}\
.s0{stroke:#c2410c}.s1{stroke:#0b62a8}.s2{stroke:#15803d}.s3{stroke:#8e3a9d}.s4{stroke:#8a6d00}.s5{stroke:#57606a}\
.f0{fill:#c2410c}.f1{fill:#0b62a8}.f2{fill:#15803d}.f3{fill:#8e3a9d}.f4{fill:#8a6d00}.f5{fill:#57606a}\
.w1{stroke-width:5;stroke-opacity:.7}.w2{stroke-width:8;stroke-opacity:.5}.w3{stroke-width:11;stroke-opacity:.45}.w4{stroke-width:14;stroke-opacity:.4}.w5,.w6{stroke-width:17;stroke-opacity:.35}\
.d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 2}.d3{stroke-dasharray:9 3 2 3}.d4{stroke-dasharray:12 4}.d5{stroke-dasharray:4 4}\
@media(prefers-color-scheme:dark){.paper{fill:#0f1318}.frame{stroke:#7d8590}.grid{stroke:#2a3038}\
text{fill:#e6edf3}.tick{fill:#aab4be}\
.s0{stroke:#ff9457}.s1{stroke:#62b5f6}.s2{stroke:#5fd08a}.s3{stroke:#d79be8}.s4{stroke:#e3c14b}.s5{stroke:#a8b1bb}\
.f0{fill:#ff9457}.f1{fill:#62b5f6}.f2{fill:#5fd08a}.f3{fill:#d79be8}.f4{fill:#e3c14b}.f5{fill:#a8b1bb}}";

/// A picture under construction.
pub(super) struct Svg {
    text: String,
}

/// The alignment of a text: whether its coordinate is that of its beginning, middle or end.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// An empty picture with this height and title.
    pub(super) fn new(height: f64, title: &str) -> Svg {
        let title = escape(title);
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{title}</title>\n\
             <style>{STYLE}</style>\n<rect class=\"paper\" width=\"{WIDTH}\" \
             height=\"{height}\"/>\n"
        );
        Svg { text }
    }

    pub(super) fn finish(mut self) -> String {
        self.text += "</svg>\n";
        self.text
    }

    pub(super) fn label(&mut self, class: &str, x: f64, y: f64, anchor: Anchor, words: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.push(&format!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(words)
        ));
    }

    /// The title of a vertical axis.
    pub(super) fn upright(&mut self, x: f64, y: f64, words: &str) {
        self.push(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} \
             {y:.1})\">{}</text>",
            escape(words)
        ));
    }

    pub(super) fn straight(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.push(&format!(
            "<path class=\"{class}\" d=\"M{:.1} {:.1}L{:.1} {:.1}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    pub(super) fn frame(&mut self, top: f64, bottom: f64) {
        self.rect("frame", (LEFT, top), (RIGHT - LEFT, bottom - top));
    }

    /// Adds style rules for one kind of picture.
    pub(super) fn style(&mut self, rules: &str) {
        self.push(&format!("<style>{rules}</style>"));
    }

    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64)) {
        let shape = rect(class, at, size);
        self.push(&format!("{shape}/>"));
    }

    /// Draws a rectangle that shows words when the user points at it.
    pub(super) fn cell(&mut self, class: &str, at: (f64, f64), size: (f64, f64), words: &str) {
        let shape = rect(&format!("cell {class}"), at, size);
        self.push(&format!("{shape}><title>{}</title></rect>", escape(words)));
    }

    /// Draws the line of one of several series through these points. Draws nothing if there are fewer than
    /// two points. The first series is drawn first and widest, so that overlapping lines all stay visible.
    pub(super) fn line(&mut self, (series, of): (usize, usize), points: &[(f64, f64)]) {
        if points.len() > 1 {
            let style = series % STYLES;
            let above = of.saturating_sub(series + 1).min(STYLES);
            let class = format!("line s{style} d{style} w{above}");
            self.path(&class, points, "");
        }
    }

    /// Fills the area below the line of a series.
    pub(super) fn area(&mut self, series: usize, points: &[(f64, f64)]) {
        self.path(&format!("area f{}", series % STYLES), points, "Z");
    }

    /// Draws the names of the series, each next to a sample of its line.
    pub(super) fn legend(&mut self, y: f64, names: &[String]) {
        let columns = legend_columns(names);
        let width = (RIGHT - LEFT) / columns as f64;
        for (at, name) in names.iter().enumerate() {
            let x = LEFT + width * (at % columns) as f64;
            let y = y + LEGEND_ROW * (at / columns) as f64;
            self.line((at, names.len()), &[(x, y - 5.0), (x + 30.0, y - 5.0)]);
            self.label("", x + 38.0, y, Anchor::Start, name);
        }
    }

    fn path(&mut self, class: &str, points: &[(f64, f64)], end: &str) {
        let mut path = String::new();
        for (at, (x, y)) in points.iter().enumerate() {
            let letter = if at == 0 { 'M' } else { 'L' };
            // Writing to a string cannot fail.
            let _ = write!(path, "{letter}{x:.1} {y:.1}");
        }
        self.push(&format!("<path class=\"{class}\" d=\"{path}{end}\"/>"));
    }

    fn push(&mut self, element: &str) {
        self.text += element;
        self.text.push('\n');
    }
}

fn rect(class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> String {
    format!(
        "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" \
         height=\"{height:.1}\""
    )
}

/// The height of all rows of a legend.
pub(super) fn legend_height(names: &[String]) -> f64 {
    LEGEND_ROW * names.len().div_ceil(legend_columns(names)) as f64
}

/// How many names fit next to one another.
fn legend_columns(names: &[String]) -> usize {
    let longest = names.iter().map(|name| name.chars().count()).max();
    let width = 60.0 + LETTER_WIDTH * longest.unwrap_or(0) as f64;
    (((RIGHT - LEFT) / width) as usize).clamp(1, names.len().max(1))
}

fn escape(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

const LEGEND_ROW: f64 = 22.0;
/// In most fonts, most letters of a legend are at most this wide.
const LETTER_WIDTH: f64 = 8.2;
