//! Latency histograms of several series in one picture. Both axes are logarithmic.

use dashpot_engine::histogram::{Histogram, lower_bound, upper_bound};
use dashpot_rules::{short_time, thousands};

use super::axis::Log;
use super::svg::{Anchor, LEFT, RIGHT, Svg, legend_height};

/// A picture of the number of I/Os by latency.
pub struct LatencyChart<'a> {
    /// The title above the picture.
    pub title: String,
    /// A note on the time that the picture covers, and on the I/Os that the picture leaves out.
    pub note: String,
    /// The series, in the order of the legend.
    pub series: Vec<LatencySeries<'a>>,
}

/// The latencies of one series.
pub struct LatencySeries<'a> {
    /// The name of the series in the legend.
    pub name: String,
    /// The latencies that are counted.
    pub latencies: &'a Histogram,
    /// How many unfinished I/Os are older than the slowest finished I/O.
    pub waiting: u64,
}

/// The number of bars for each factor of ten.
const BINS_PER_DECADE: f64 = 10.0;
/// The left end of the axis. All shorter latencies go into one bin, because in virtual time many writes take
/// no time.
const LEAST_NS: f64 = 1e3;
const PLOT_HEIGHT: f64 = 360.0;
/// The height below the frame, for names of decades and the title of the axis.
const FOOT: f64 = 58.0;

impl LatencyChart<'_> {
    /// The picture as SVG.
    pub fn svg(&self) -> String {
        let names: Vec<String> = self.series.iter().map(LatencySeries::legend).collect();
        let top = 74.0 + legend_height(&names);
        let bottom = top + PLOT_HEIGHT;
        let mut svg = Svg::new(bottom + FOOT, &self.title);
        svg.label("title", LEFT, 28.0, Anchor::Start, &self.title);
        svg.label("tick", LEFT, 49.0, Anchor::Start, &self.note);
        svg.legend(76.0, &names);
        let bins: Vec<Vec<Bin>> = self.series.iter().map(|one| one.bins()).collect();
        let all = || bins.iter().flatten();
        let least = all().map(|bin| bin.from).fold(f64::INFINITY, f64::min);
        let most = all().map(|bin| bin.to).fold(1.0, f64::max);
        let fullest = all().map(|bin| bin.count).max().unwrap_or(1);
        let x = Log::new(least.min(most), most, LEFT, RIGHT);
        // The axis begins at half an I/O, so that the bar of a single I/O has a visible height.
        let y = Log::new(0.5, fullest as f64 * 1.2, bottom, top);
        draw_axes(&mut svg, &x, &y, top, bottom);
        for (at, (series, bins)) in self.series.iter().zip(&bins).enumerate() {
            draw_bars(&mut svg, (at, names.len()), bins, &x, &y, bottom);
            if let Some(mean) = series.latencies.mean() {
                let place = x.place(mean.max(1) as f64);
                svg.straight(&format!("mean s{}", at % 6), (place, top), (place, bottom));
            }
        }
        svg.frame(top, bottom);
        svg.finish()
    }
}

impl LatencySeries<'_> {
    fn legend(&self) -> String {
        let mean = self.latencies.mean().map_or("no I/O".to_owned(), |mean| {
            format!("mean {}", short_time(mean))
        });
        let waiting = match self.waiting {
            0 => String::new(),
            waiting => format!(", {} still wait", thousands(waiting)),
        };
        format!("{}: {mean}{waiting}", self.name)
    }

    fn bins(&self) -> Vec<Bin> {
        let mut bins: Vec<Bin> = Vec::new();
        for (bucket, count) in self.latencies.buckets() {
            let middle = lower_bound(bucket).midpoint(upper_bound(bucket)).max(1) as f64;
            let (from, to) = edges(middle);
            match bins.last_mut() {
                Some(bin) if bin.from == from => bin.count += count,
                _ => bins.push(Bin { from, to, count }),
            }
        }
        bins
    }
}

/// Latencies between two edges, in nanoseconds.
struct Bin {
    from: f64,
    to: f64,
    count: u64,
}

/// The edges of the bin in which a latency is counted. All latencies below [`LEAST_NS`] share one bin, which
/// is a decade wide.
fn edges(ns: f64) -> (f64, f64) {
    if ns < LEAST_NS {
        return (LEAST_NS / 10.0, LEAST_NS);
    }
    let at = libm::floor(libm::log10(ns) * BINS_PER_DECADE);
    let edge = |at: f64| libm::pow(10.0, at / BINS_PER_DECADE);
    (edge(at), edge(at + 1.0))
}

fn draw_axes(svg: &mut Svg, x: &Log, y: &Log, top: f64, bottom: f64) {
    for decade in x.decades() {
        let place = x.place(decade);
        svg.straight("grid", (place, top), (place, bottom));
        let (place, name) = if decade < LEAST_NS {
            (place.midpoint(x.place(LEAST_NS)), "below".to_owned())
        } else {
            (place, decade_name(decade))
        };
        svg.label("tick", place, bottom + 20.0, Anchor::Middle, &name);
    }
    for decade in y.decades().filter(|decade| *decade >= 1.0) {
        let place = y.place(decade);
        svg.straight("grid", (LEFT, place), (RIGHT, place));
        svg.label(
            "tick",
            LEFT - 8.0,
            place + 4.0,
            Anchor::End,
            &thousands(decade as u64),
        );
    }
    svg.label(
        "",
        (LEFT + RIGHT) / 2.0,
        bottom + 44.0,
        Anchor::Middle,
        "latency (dotted: the mean)",
    );
    svg.upright(20.0, (top + bottom) / 2.0, "I/Os");
}

/// Draws bars without gaps between them, with one outline around each run of adjacent bars.
fn draw_bars(
    svg: &mut Svg,
    (series, of): (usize, usize),
    bins: &[Bin],
    x: &Log,
    y: &Log,
    bottom: f64,
) {
    for run in bins.chunk_by(|a, b| b.from < a.to * 1.01) {
        let mut points = Vec::new();
        for bin in run {
            let height = y.place(bin.count as f64);
            points.push((x.place(bin.from), height));
            points.push((x.place(bin.to), height));
        }
        if let (Some(first), Some(last)) = (points.first().copied(), points.last().copied()) {
            points.insert(0, (first.0, bottom));
            points.push((last.0, bottom));
        }
        svg.area(series, &points);
        svg.line((series, of), &points);
    }
}

pub(super) fn decade_name(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns if ns >= 1e3 => (ns / 1e3, "µs"),
        ns => (ns, "ns"),
    };
    format!("{value:.0} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_io_is_in_one_bin() {
        let histogram =
            Histogram::from_iter([(780_000, 550), (10_000_000, 80), (4_500_000_000, 10)]);
        let series = LatencySeries {
            name: "legacy".to_owned(),
            latencies: &histogram,
            waiting: 0,
        };
        let bins = series.bins();
        let counts: Vec<u64> = bins.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [550, 80, 10]);
        assert!(bins[0].from <= 780_000.0 && 780_000.0 < bins[0].to);
    }

    #[test]
    fn names_are_escaped_and_nothing_is_no_failure() {
        let none = Histogram::default();
        let chart = LatencyChart {
            title: "a < b".to_owned(),
            note: "60s simulated".to_owned(),
            series: vec![LatencySeries {
                name: "none".to_owned(),
                latencies: &none,
                waiting: 3,
            }],
        };
        let svg = chart.svg();
        assert!(
            svg.contains("a &lt; b") && svg.contains("none: no I/O, 3 still wait"),
            "{svg}"
        );
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn what_took_nothing_is_seen_beside_microseconds_and_seconds() {
        let histogram =
            Histogram::from_iter([(0, 500), (999, 40), (2_000, 3), (4_500_000_000, 10)]);
        let chart = LatencyChart {
            title: "at the volume".to_owned(),
            note: String::new(),
            series: vec![LatencySeries {
                name: "legacy".to_owned(),
                latencies: &histogram,
                waiting: 0,
            }],
        };
        let counts: Vec<u64> = chart.series[0].bins().iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [540, 3, 10]);
        let svg = chart.svg();
        for name in [">below<", ">1 µs<", ">1 s<"] {
            assert!(svg.contains(name), "{name}: {svg}");
        }
        assert!(!svg.contains(">100 ns<"), "{svg}");
    }

    #[test]
    fn decades_have_names() {
        assert_eq!(
            [1.0, 1e4, 1e5, 1e9].map(decade_name),
            ["1 ns", "10 µs", "100 µs", "1 s"]
        );
    }
}
