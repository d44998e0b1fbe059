//! Heat maps as they are drawn, byte for byte.

use std::time::Duration;

use dashpot_engine::histogram::Histogram;
use expect_test::expect;

use super::{Screen, heat_svg, heat_text};
use crate::report::heatmap::{Column, Crop, HeatMap};
use crate::report::in_flight::InFlight;

/// Reads of 10 ms; from the fourth second on others take 100 µs, and one takes half a second.
fn heat() -> HeatMap {
    let column = |second: u64| {
        let mut latencies = Histogram::default();
        (0..40).for_each(|_| latencies.record(10_020_000));
        (0..second.saturating_sub(3) * 1_000).for_each(|at| latencies.record(100_000 + 10 * at));
        if second == 6 {
            latencies.record(500_000_000);
        }
        let in_flight = InFlight {
            zios: 3,
            oldest_ns: Some(1_250_000_000),
            disk: Some("d".to_owned()),
            wait: Some("held".to_owned()),
            rule: Some(2),
        };
        let second_ns = 1_000_000_000;
        let start = (7 * 3_600 + 54 + second) * second_ns;
        Column::new(
            &latencies,
            start,
            Duration::from_nanos(second_ns),
            in_flight,
        )
    };
    HeatMap {
        title: "Latency of d (read)".to_owned(),
        interval: dashpot_engine::Duration::from_secs(1),
        columns: (0..12).map(column).collect(),
        zone_ns: 3_600_000_000_000,
        crop: Crop::default(),
    }
}

fn cropped() -> HeatMap {
    let crop = Crop {
        min_ns: Some(1_000_000),
        max_ns: Some(100_000_000),
    };
    HeatMap { crop, ..heat() }
}

const PIPE: Screen = Screen {
    columns: 50,
    lines: 30,
    colour: false,
    moving: false,
};
const TERMINAL: Screen = Screen {
    columns: 40,
    lines: 14,
    colour: true,
    moving: true,
};

#[test]
fn in_a_pipe_the_whole_time_has_the_whole_width() {
    expect![[r#""#]].assert_eq(&heat_text(&heat(), PIPE));
}

#[test]
fn what_is_cropped_is_beside_the_rest() {
    expect![[r#""#]].assert_eq(&heat_text(&cropped(), PIPE));
}

#[test]
fn on_a_terminal_two_bands_share_a_line_and_the_newest_is_at_the_right() {
    let text = heat_text(&heat(), TERMINAL);
    expect![[r#""#]].assert_eq(&text.replace('\x1b', "^"));
    assert!(text.lines().count() <= TERMINAL.lines);
}

#[test]
fn nothing_is_a_picture_too() {
    let nothing = HeatMap {
        columns: Vec::new(),
        ..heat()
    };
    assert!(heat_text(&nothing, TERMINAL).starts_with("Latency of d (read): 0 I/Os"));
    assert!(!heat_svg(&nothing).contains("NaN"));
}

#[test]
fn every_cell_with_an_io_says_how_many() {
    for heat in [heat(), cropped()] {
        let svg = heat_svg(&heat);
        let counts = svg.split("<title>").filter_map(|words| {
            let (_, words) = words.split_once(": ")?;
            let (count, _) = words.split_once(" of ")?;
            count.replace(',', "").parse::<u64>().ok()
        });
        let all = heat.columns.iter().map(Column::count);
        assert_eq!(counts.sum::<u64>(), all.sum::<u64>());
    }
}

#[test]
fn the_picture_as_svg() {
    let short = HeatMap {
        columns: cropped().columns[3..7].to_vec(),
        ..cropped()
    };
    expect![[r#""#]].assert_eq(&heat_svg(&short));
}
