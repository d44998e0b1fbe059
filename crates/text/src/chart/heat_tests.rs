//! Heat maps as they are drawn, byte for byte.

use std::time::Duration;

use dashpot_engine::histogram::Histogram;
use dashpot_observe::InFlight;
use expect_test::expect;

use super::{Screen, heat_svg, heat_text};
use crate::heatmap::{Crop, HeatColumn, HeatMap};

/// Reads of 10 ms. From the fourth second on, other reads take 100 µs, and one read takes half a second.
fn heat() -> HeatMap {
    let column = |second: u64| {
        let mut latencies = Histogram::of(10_020_000, 40);
        (0..second.saturating_sub(3) * 1_000).for_each(|at| latencies.record(100_000 + 10 * at));
        if second == 6 {
            latencies.record(500_000_000);
        }
        let in_flight = InFlight {
            zios: Some(3),
            oldest_ns: Some(1_250_000_000),
            device: Some("d".to_owned()),
            wait: Some("held".to_owned()),
            wait_ns: None,
            rule: Some(2),
        };
        let second_ns = 1_000_000_000;
        let start = (7 * 3_600 + 54 + second) * second_ns;
        HeatColumn::new(
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
    expect![[r#"
        Latency of d (read): 36,481 I/Os, a column is 1s
                |
                |                  ...
                |
                |
           100ms|
                |
                |
                |
                |
            10ms|====================================
                |
                |
                |
                |
             1ms|
                |
                |
                |
                |                           ***%%%%%%
           100us|            ###%%%%%%@@@@@@@@@@@@@@@
                +---+--------------+--------------+--
                    08:00:55       08:01:00  08:01:05
                 I/Os: 1 .:-=+*#%@ 5,831
        In flight: 3, the oldest for 1.250 s on d (held, r
    "#]]
    .assert_eq(&heat_text(&heat(), PIPE));
}

#[test]
fn what_is_cropped_is_beside_the_rest() {
    expect![[r#"
        Latency of d (read): 36,481 I/Os, a column is 1s
         > 100ms|                  ...
                |
                |
            50ms|
                |
                |
                |
            20ms|
                |
                |
            10ms|====================================
                |
                |
             5ms|
                |
                |
                |
             2ms|
                |
                |
                |
           < 1ms|            ###%%%%%%%%%@@@@@@@@@@@@
                +---+--------------+--------------+--
                    08:00:55       08:01:00  08:01:05
                 I/Os: 1 .:-=+*#%@ 8,000
        In flight: 3, the oldest for 1.250 s on d (held, r
    "#]]
    .assert_eq(&heat_text(&cropped(), PIPE));
}

#[test]
fn on_a_terminal_two_bands_share_a_line_and_the_newest_is_at_the_right() {
    let text = heat_text(&heat(), TERMINAL);
    expect![[r#"
        Latency of d (read): 36,481 I/Os, a colu
           100ms ^[38;5;234;48;5;234m                         ^[38;5;55;48;5;234m▀^[38;5;234;48;5;234m     ^[0m
            10ms ^[38;5;234;48;5;234m                   ^[38;5;234;48;5;198m▀▀▀▀▀▀▀▀▀▀▀▀^[0m
             1ms ^[38;5;234;48;5;234m                               ^[0m
           100us ^[38;5;234;48;5;234m                       ^[38;5;234;48;5;221m▀▀^[38;5;234;48;5;227m▀▀▀^[38;5;234;48;5;229m▀▀▀^[0m
                +-------------------------+-----
                                        08:01:00
                 I/Os: 1 ^[48;5;55m  ^[48;5;91m  ^[48;5;127m  ^[48;5;163m  ^[48;5;198m  ^[48;5;204m  ^[48;5;209m  ^[48;5;215m  ^[48;5;221m  ^[48;5;227m  ^[48;5;229m  ^[0m 8,000
        In flight: 3, the oldest for 1.250 s on 
    "#]].assert_eq(&text.replace('\x1b', "^"));
    assert!(text.lines().count() <= TERMINAL.lines);
}

#[test]
fn no_line_is_wider_than_a_terminal() {
    let narrow = Screen {
        columns: 44,
        colour: false,
        ..TERMINAL
    };
    for heat in [heat(), cropped()] {
        let text = heat_text(&heat, narrow);
        let wide = text.lines().find(|line| line.chars().count() > 44);
        assert_eq!(wide, None);
    }
}

#[test]
fn nothing_is_a_picture_too() {
    let nothing = HeatMap {
        columns: Vec::new(),
        ..heat()
    };
    assert!(heat_text(&nothing, TERMINAL).starts_with("Latency of d (read): 0 I/Os"));
    let text = heat_text(&nothing, TERMINAL);
    assert!(
        text.contains("no I/O") && !text.contains("I/Os: 1"),
        "{text}"
    );
    assert!(!heat_svg(&nothing).contains("NaN"));
    assert!(heat_svg(&heat()).contains(" I/Os, a column is "));
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
        let all = heat.columns.iter().map(HeatColumn::count);
        assert_eq!(counts.sum::<u64>(), all.sum::<u64>());
    }
}

#[test]
fn the_picture_as_svg() {
    let short = HeatMap {
        columns: cropped().columns[3..7].to_vec(),
        ..cropped()
    };
    expect![[r#"
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 920 494" width="920" height="494" role="img">
        <title>Latency of d (read)</title>
        <style>.paper{fill:#fff}.frame{fill:none;stroke:#8a8f98}.grid{stroke:#e3e5e8}text{font:14px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#1f2328}.title{font-size:17px;font-weight:600}.tick{font-size:13px;fill:#4d545d}.line{fill:none;stroke-width:2;stroke-linejoin:round}.area{stroke:none;fill-opacity:.13}.mean{stroke-width:1.6;stroke-dasharray:2 4}.warm{fill:#8a8f98;fill-opacity:.14;stroke:none}.s0{stroke:#c2410c}.s1{stroke:#0b62a8}.s2{stroke:#15803d}.s3{stroke:#8e3a9d}.s4{stroke:#8a6d00}.s5{stroke:#57606a}.f0{fill:#c2410c}.f1{fill:#0b62a8}.f2{fill:#15803d}.f3{fill:#8e3a9d}.f4{fill:#8a6d00}.f5{fill:#57606a}.w1{stroke-width:5;stroke-opacity:.7}.w2{stroke-width:8;stroke-opacity:.5}.w3{stroke-width:11;stroke-opacity:.45}.w4{stroke-width:14;stroke-opacity:.4}.w5,.w6{stroke-width:17;stroke-opacity:.35}.d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 2}.d3{stroke-dasharray:9 3 2 3}.d4{stroke-dasharray:12 4}.d5{stroke-dasharray:4 4}@media(prefers-color-scheme:dark){.paper{fill:#0f1318}.frame{stroke:#7d8590}.grid{stroke:#2a3038}text{fill:#e6edf3}.tick{fill:#aab4be}.s0{stroke:#ff9457}.s1{stroke:#62b5f6}.s2{stroke:#5fd08a}.s3{stroke:#d79be8}.s4{stroke:#e3c14b}.s5{stroke:#a8b1bb}.f0{fill:#ff9457}.f1{fill:#62b5f6}.f2{fill:#5fd08a}.f3{fill:#d79be8}.f4{fill:#e3c14b}.f5{fill:#a8b1bb}}</style>
        <rect class="paper" width="920" height="494"/>
        <style>.ground{fill:#f3f5f7}.h0{fill:#fbd267}.h1{fill:#fdb94a}.h2{fill:#fd9c3c}.h3{fill:#fb7a32}.h4{fill:#f3562a}.h5{fill:#e03322}.h6{fill:#c31524}.h7{fill:#9c0a2a}.h8{fill:#730727}.h9{fill:#47051b}.cell{shape-rendering:crispEdges}.cell:hover{stroke:#0b62a8;stroke-width:2}@media(prefers-color-scheme:dark){.ground{fill:#171c23}.h0{fill:#5a2a86}.h1{fill:#7b2f8e}.h2{fill:#9d3390}.h3{fill:#c03a88}.h4{fill:#dd4c79}.h5{fill:#f0666b}.h6{fill:#fa8763}.h7{fill:#fdab6e}.h8{fill:#fdd08a}.h9{fill:#fcf4b6}}</style>
        <text class="title" x="104.0" y="28.0" text-anchor="start">Latency of d (read)</text>
        <text class="tick" x="104.0" y="54.0" text-anchor="start">6,161 I/Os, a column is 1s; in a cell: 1</text>
        <rect class="h0" x="386.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h1" x="404.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h2" x="422.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h3" x="440.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h4" x="458.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h5" x="476.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h6" x="494.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h7" x="512.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h8" x="530.9" y="43.0" width="18.0" height="12.0"/>
        <rect class="h9" x="548.9" y="43.0" width="18.0" height="12.0"/>
        <text class="tick" x="572.9" y="54.0" text-anchor="start">3,000</text>
        <rect class="ground" x="104.0" y="84.0" width="792.0" height="352.0"/>
        <text class="tick" x="96.0" y="432.0" text-anchor="end">&lt; 1 ms</text>
        <path class="grid" d="M104.0 420.0L896.0 420.0"/>
        <text class="tick" x="96.0" y="376.0" text-anchor="end">2 ms</text>
        <path class="grid" d="M104.0 372.0L896.0 372.0"/>
        <text class="tick" x="96.0" y="312.0" text-anchor="end">5 ms</text>
        <path class="grid" d="M104.0 308.0L896.0 308.0"/>
        <text class="tick" x="96.0" y="264.0" text-anchor="end">10 ms</text>
        <path class="grid" d="M104.0 260.0L896.0 260.0"/>
        <text class="tick" x="96.0" y="216.0" text-anchor="end">20 ms</text>
        <path class="grid" d="M104.0 212.0L896.0 212.0"/>
        <text class="tick" x="96.0" y="152.0" text-anchor="end">50 ms</text>
        <path class="grid" d="M104.0 148.0L896.0 148.0"/>
        <text class="tick" x="96.0" y="96.0" text-anchor="end">&gt; 100 ms</text>
        <text x="20.0" y="260.0" text-anchor="middle" transform="rotate(-90 20.0 260.0)">latency</text>
        <path class="frame" d="M104.0 436.0L104.0 441.0"/>
        <text class="tick" x="104.0" y="456.0" text-anchor="start">08:00:57</text>
        <path class="frame" d="M302.0 436.0L302.0 441.0"/>
        <text class="tick" x="302.0" y="456.0" text-anchor="start">08:00:58</text>
        <path class="frame" d="M500.0 436.0L500.0 441.0"/>
        <text class="tick" x="500.0" y="456.0" text-anchor="start">08:00:59</text>
        <path class="frame" d="M698.0 436.0L698.0 441.0"/>
        <text class="tick" x="698.0" y="456.0" text-anchor="start">08:01:00</text>
        <text class="" x="500.0" y="480.0" text-anchor="middle">time (1s a column)</text>
        <rect class="cell h4" x="104.0" y="244.0" width="198.0" height="16.0"><title>08:00:57.000, 9.91ms to 12.3ms: 40 of 40 I/Os (100.00 %); up to here 40 (100.00 %)</title></rect>
        <rect class="cell h8" x="302.0" y="420.0" width="198.0" height="16.0"><title>08:00:58.000, 0ns to 1.00ms: 1,000 of 1,040 I/Os (96.15 %); up to here 1,000 (96.15 %)</title></rect>
        <rect class="cell h4" x="302.0" y="244.0" width="198.0" height="16.0"><title>08:00:58.000, 9.91ms to 12.3ms: 40 of 1,040 I/Os (3.85 %); up to here 1,040 (100.00 %)</title></rect>
        <rect class="cell h9" x="500.0" y="420.0" width="198.0" height="16.0"><title>08:00:59.000, 0ns to 1.00ms: 2,000 of 2,040 I/Os (98.04 %); up to here 2,000 (98.04 %)</title></rect>
        <rect class="cell h4" x="500.0" y="244.0" width="198.0" height="16.0"><title>08:00:59.000, 9.91ms to 12.3ms: 40 of 2,040 I/Os (1.96 %); up to here 2,040 (100.00 %)</title></rect>
        <rect class="cell h9" x="698.0" y="420.0" width="198.0" height="16.0"><title>08:01:00.000, 0ns to 1.00ms: 3,000 of 3,041 I/Os (98.65 %); up to here 3,000 (98.65 %)</title></rect>
        <rect class="cell h4" x="698.0" y="244.0" width="198.0" height="16.0"><title>08:01:00.000, 9.91ms to 12.3ms: 40 of 3,041 I/Os (1.32 %); up to here 3,040 (99.97 %)</title></rect>
        <rect class="cell h0" x="698.0" y="84.0" width="198.0" height="16.0"><title>08:01:00.000, 98.5ms or more: 1 of 3,041 I/Os (0.03 %); up to here 3,041 (100.00 %)</title></rect>
        <rect class="frame" x="104.0" y="84.0" width="792.0" height="352.0"/>
        </svg>
    "#]].assert_eq(&heat_svg(&short));
}
