//! A heat map in the characters of a terminal. With colour, each line of text shows two bands, and the
//! picture has its own background, so that the shades are the same on every terminal. Without colour, denser
//! characters mean more I/Os.

use std::fmt::Write;

use dashpot_engine::Duration;
use dashpot_rules::{short_time, thousands};

use super::shade::Shades;
use super::ticks::ticks;
use crate::heatmap::{Band, BandPlace, Cells, HeatMap, Map, Size};

/// The screen that a picture is drawn on.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The number of columns of the screen.
    pub columns: usize,
    /// The maximum number of lines for the whole picture.
    pub lines: usize,
    /// Whether the terminal shows colours.
    pub colour: bool,
    /// Whether the newest column is always at the right end, as in a moving picture. Otherwise the picture
    /// spreads its whole time over the whole width.
    pub moving: bool,
}

/// Shades from the 256-colour palette: indigo, magenta, orange, and pale yellow for the highest count.
const COLOURS: [u8; 11] = [55, 91, 127, 163, 198, 204, 209, 215, 221, 227, 229];
/// The background: almost black.
const GROUND: u8 = 234;
const CHARACTERS: [char; 9] = ['.', ':', '-', '=', '+', '*', '#', '%', '@'];
const LABEL_WIDTH: usize = 8;
/// The width of a time of day and a space.
const TICK_WIDTH: usize = 10;
/// How many lines have no cells: title, axis, times, legend, I/Os in flight.
const OTHER_LINES: usize = 5;
const LINES_MIN: usize = 4;
/// The largest width of a column.
const COLUMN_WIDTH_MAX: usize = 4;

impl Screen {
    /// How many columns of a map fit on the screen.
    pub(crate) fn map_columns(&self) -> usize {
        self.columns.saturating_sub(LABEL_WIDTH + 1).max(1)
    }

    fn shades(&self) -> usize {
        if self.colour {
            COLOURS.len()
        } else {
            CHARACTERS.len()
        }
    }
}

/// The picture. Each line ends with a line feed.
pub fn heat_text(heat: &HeatMap, screen: Screen) -> String {
    if screen.moving {
        Picture::new(&heat.newest(screen.map_columns()), screen).text()
    } else {
        Picture::new(heat, screen).text()
    }
}

struct Picture<'a> {
    heat: &'a HeatMap,
    screen: Screen,
    map: Map,
    shades: Shades,
    /// The number of characters for each column.
    width: usize,
    /// How many characters of a line are left empty before the first column.
    free: usize,
}

/// The bands of one line of text.
struct Line {
    upper: Option<usize>,
    lower: Option<usize>,
}

impl<'a> Picture<'a> {
    fn new(heat: &'a HeatMap, screen: Screen) -> Picture<'a> {
        let crops = [heat.crop.min_ns, heat.crop.max_ns];
        let lines = screen
            .lines
            .saturating_sub(OTHER_LINES + crops.iter().flatten().count());
        let lines = lines.max(LINES_MIN);
        let room = Size {
            columns: screen.map_columns(),
            bands: if screen.colour { 2 * lines } else { lines },
        };
        let map = Map::new(heat, room);
        let fitting = room.columns / map.columns.len().max(1);
        let width = if screen.moving {
            1
        } else {
            fitting.clamp(1, COLUMN_WIDTH_MAX)
        };
        let free = if screen.moving {
            room.columns.saturating_sub(map.columns.len())
        } else {
            0
        };
        Picture {
            heat,
            screen,
            shades: Shades::new(map.most, screen.shades()),
            map,
            width,
            free,
        }
    }

    fn text(&self) -> String {
        let mut text = self.title();
        for line in self.lines() {
            let label = self.label(&line);
            let _ = write!(text, "{label:>LABEL_WIDTH$}");
            if self.screen.colour {
                self.push_colours(&mut text, &line);
            } else {
                self.push_characters(&mut text, &line);
            }
            text.push('\n');
        }
        text += &self.time_axis();
        text += &self.legend();
        text
    }

    fn title(&self) -> String {
        let count: u64 = self.map.columns.iter().map(Cells::count).sum();
        let title = format!(
            "{}: {} I/Os, a column is {}{}",
            self.heat.title,
            thousands(count),
            self.heat.lasts(self.map.joined),
            self.heat.missed(),
        );
        self.fitting(&title)
    }

    /// The line, cut to the width of the terminal.
    fn fitting(&self, line: &str) -> String {
        line.chars()
            .take(self.screen.columns)
            .chain(['\n'])
            .collect()
    }

    /// The lines, from the top.
    fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for (at, band) in self.map.bands.iter().enumerate() {
            let whole = !self.screen.colour || band.place != BandPlace::Within;
            match lines.last_mut() {
                Some(Line {
                    upper: upper @ None,
                    ..
                }) if !whole => *upper = Some(at),
                _ => lines.push(Line {
                    upper: whole.then_some(at),
                    lower: Some(at),
                }),
            }
        }
        lines.reverse();
        lines
    }

    fn label(&self, line: &Line) -> String {
        let bands = [line.lower, line.upper].into_iter().flatten();
        let bands = bands.filter(|at| !self.map.is_named_below(*at));
        let mut names = bands.filter_map(|at| self.map.bands[at].name());
        names.next().unwrap_or_default()
    }

    fn push_characters(&self, text: &mut String, line: &Line) {
        text.push('|');
        *text += &" ".repeat(self.free);
        for column in &self.map.columns {
            let shade = self.shade(column, line.lower);
            let character = shade.map_or(' ', |shade| CHARACTERS[shade]);
            text.extend(std::iter::repeat_n(character, self.width));
        }
        text.truncate(text.trim_end().len());
    }

    fn push_colours(&self, text: &mut String, line: &Line) {
        text.push(' ');
        let free = std::iter::repeat_n((GROUND, GROUND), self.free);
        let cells = self.map.columns.iter().flat_map(|column| {
            let colour = |band| {
                self.shade(column, band)
                    .map_or(GROUND, |shade| COLOURS[shade])
            };
            std::iter::repeat_n((colour(line.upper), colour(line.lower)), self.width)
        });
        let mut last = None;
        for (upper, lower) in free.chain(cells) {
            if last != Some((upper, lower)) {
                let _ = write!(text, "\x1b[38;5;{upper};48;5;{lower}m");
                last = Some((upper, lower));
            }
            text.push(if upper == lower { ' ' } else { '▀' });
        }
        *text += "\x1b[0m";
    }

    fn shade(&self, column: &Cells, band: Option<usize>) -> Option<usize> {
        self.shades.of(column.counts[band?])
    }

    fn time_axis(&self) -> String {
        let starts = self.map.columns.iter();
        let local = |column: &Cells| column.start_ns.saturating_add_signed(self.heat.zone_ns);
        let starts: Vec<u64> = starts.map(local).collect();
        let length = self.free + self.width * self.map.columns.len();
        let mut axis = vec![b'-'; length];
        let mut names = String::new();
        for (column, name) in ticks(&starts, TICK_WIDTH.div_ceil(self.width)) {
            let place = self.free + column * self.width;
            axis[place] = b'+';
            // A name that would extend beyond the right end is moved to the left.
            let start = place.min(length.saturating_sub(name.len()));
            if start >= names.len() {
                let gap = start - names.len();
                let _ = write!(names, "{:gap$}{name} ", "");
            }
        }
        let axis = String::from_utf8_lossy(&axis);
        let names = format!("{:LABEL_WIDTH$} {names}", "");
        format!("{:LABEL_WIDTH$}+{axis}\n{}\n", "", names.trim_end())
    }

    fn legend(&self) -> String {
        let mut ramp = String::new();
        if self.screen.colour {
            for colour in COLOURS {
                let _ = write!(ramp, "\x1b[48;5;{colour}m  ");
            }
            ramp += "\x1b[0m";
        } else {
            ramp.extend(CHARACTERS);
        }
        let most = thousands(self.shades.most());
        let in_flight = self.heat.in_flight();
        let in_flight = match in_flight.oldest_ns {
            Some(_) => self.fitting(&in_flight.to_string()),
            None => String::new(),
        };
        let shades = match self.map.most {
            0 => "no I/O".to_owned(),
            _ => format!("I/Os: 1 {ramp} {most}"),
        };
        format!("{:LABEL_WIDTH$} {shades}\n{in_flight}", "")
    }
}

impl Band {
    /// The band's name along the axis, if the band has a name.
    fn name(&self) -> Option<String> {
        let round = self.round_ns.map(|ns| Duration::from_nanos(ns).to_string());
        Some(match self.place {
            BandPlace::Within => round?,
            BandPlace::Above => format!("> {}", round.unwrap_or_else(|| short_time(self.from_ns))),
            BandPlace::Below => {
                format!("< {}", round.unwrap_or_else(|| short_time(self.to_ns + 1)))
            }
        })
    }
}
