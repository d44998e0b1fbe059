//! Compares histograms with perf-tools' example file, and tests cases that the example lacks.

use std::time::Duration;

use dashpot_engine::Op;
use dashpot_observe::{
    Counts, DeviceInterval, Dimension, InFlight, Kind, OpInterval, Schedule, Seen,
};
use dashpot_text::surface::{Pictures, Surface};
use dashpot_text::table::assert_fits;
use expect_test::expect;

use super::*;
use crate::report::Report;

/// Every histogram of the example file of perf-tools' iolatency, unchanged.
const EXAMPLES: &str = include_str!("../fixtures/iolatency.txt");

/// The counts of a printed histogram.
fn counts(table: &str) -> Vec<u64> {
    let cells = table
        .lines()
        .skip(1)
        .map(|row| row.split([':', '|']).nth(1));
    cells
        .map(|cell| cell.unwrap().trim().parse().unwrap())
        .collect()
}

/// A histogram with `counts[i]` latencies inside row `i`.
fn latencies(counts: &[u64]) -> Histogram {
    let rows = counts.iter().enumerate();
    rows.map(|(row, &count)| ((1_000_000 << row) * 3 / 4, count))
        .collect()
}

fn interval(latencies: &Histogram) -> Interval {
    with(Scope::All(Distribution::new(
        latencies,
        Boundary::AsLabelled,
    )))
}

fn with(scope: Scope) -> Interval {
    Interval {
        at_ns: 7,
        time: None,
        length: Length::of(std::time::Duration::from_secs(1)),
        scope,
        left_out: LeftOut::default(),
        style: Style::Histograms,
        mention: Mention::default(),
        room: Room::UNBOUNDED,
    }
}

fn in_flight(in_flight: InFlight) -> LeftOut {
    LeftOut {
        in_flight,
        ..LeftOut::default()
    }
}

#[test]
fn the_examples_come_out_byte_for_byte() {
    let mut rows = 0;
    for example in EXAMPLES.trim_end().split("\n\n") {
        let counts = counts(example);
        rows += counts.len();
        let report = interval(&latencies(&counts)).to_string();
        assert_eq!(report, format!("\n{example}\n"));
    }
    assert_eq!(rows, 152);
}

#[test]
fn the_opening_says_how_to_end_only_what_would_not_end() {
    assert_eq!(
        opening(1, true),
        "Tracing block I/O. Output every 1 seconds. Ctrl-C to end.\n"
    );
    assert_eq!(
        opening(5, false),
        "Tracing block I/O. Output every 5 seconds.\n"
    );
}

#[test]
fn an_idle_interval_has_one_empty_row_below_its_time() {
    let report = Interval {
        time: Some("21:05:09".into()),
        ..interval(&Histogram::default())
    };
    let expected = "\n21:05:09:\n".to_owned()
        + "  >=(ms) .. <(ms)   : I/O      |Distribution                          |\n"
        + "       0 -> 1       : 0        |                                      |\n";
    assert_eq!(report.to_string(), expected);
}

#[test]
fn a_power_of_two_is_where_the_boundary_puts_it() {
    let mut histogram = Histogram::default();
    histogram.record(2_000_000);
    let rows = |boundary| Distribution::new(&histogram, boundary).rows;
    let labelled = rows(Boundary::AsLabelled);
    let original = rows(Boundary::AsOriginal);
    assert_eq!(
        labelled.last().map(|row| (row.from_ms, row.count)),
        Some((2, 1))
    );
    assert_eq!(
        original.last().map(|row| (row.from_ms, row.count)),
        Some((1, 1))
    );
}

#[test]
fn wide_numbers_push_the_columns() {
    let rows = [Row {
        from_ms: 0,
        to_ms: 1,
        count: 1_234_567_890,
    }];
    let mut table = String::new();
    write_table(&mut table, &rows).unwrap();
    let bar = "#".repeat(38);
    assert!(table.ends_with(&format!("       0 -> 1       : 1234567890 |{bar}|\n")));
}

#[test]
fn what_the_interval_did_not_see_end_is_named() {
    let report = Interval {
        left_out: in_flight(InFlight {
            zios: Some(1),
            oldest_ns: Some(2_500_000_000),
            ..InFlight::default()
        }),
        ..interval(&Histogram::default())
    };
    assert_eq!(
        report.remark().as_deref(),
        Some("In flight: 1, the oldest for 2.500 s.")
    );
}

#[test]
fn the_last_interval_names_what_it_did_not_see_end_however_young() {
    let of = |mention| Interval {
        left_out: in_flight(InFlight {
            zios: Some(1),
            oldest_ns: Some(400_000_000),
            ..InFlight::default()
        }),
        mention,
        ..interval(&Histogram::default())
    };
    let remark = of(Mention::All).remark();
    assert_eq!(
        remark.as_deref(),
        Some("In flight: 1, the oldest for 0.400 s.")
    );
    assert_eq!(of(Mention::WholeInterval).remark(), None);
    let quiet = interval(&Histogram::default()).to_string();
    assert_eq!(of(Mention::All).to_string(), quiet, "the text stays");
}

#[test]
fn what_outlasts_nearly_all_that_ended_is_named_before_its_interval_is_over() {
    let hung = InFlight {
        zios: Some(3),
        oldest_ns: Some(600_000_000),
        ..InFlight::default()
    };
    let quick = Distribution::new(&latencies(&[5_000]), Boundary::AsLabelled);
    let by = |distribution: &Distribution| Scope::By {
        by: "client",
        values: vec![Value {
            value: "a".to_owned(),
            layer: None,
            distribution: distribution.clone(),
        }],
    };
    for scope in [Scope::All(quick.clone()), by(&quick)] {
        let report = Interval {
            left_out: in_flight(hung.clone()),
            ..with(scope)
        };
        let remark = report.remark().unwrap_or_default();
        assert!(
            remark.starts_with("In flight: 3, the oldest for 0.600 s. That"),
            "{remark}"
        );
    }
    let slow = Distribution::new(
        &latencies(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]),
        Boundary::AsLabelled,
    );
    let report = Interval {
        left_out: in_flight(hung),
        ..with(Scope::All(slow))
    };
    assert_eq!(report.remark(), None);
}

#[test]
fn json_has_rows_percentiles_and_what_is_in_flight() {
    let json = serde_json::to_value(interval(&latencies(&[0, 3]))).unwrap();
    let expected = serde_json::json!({
        "at_ns": 7,
        "elapsed_ns": 1_000_000_000,
        "missed": 0,
        "stopped_ns": 0,
        "rows": [
            {"from_ns": 0, "to_ns": 999_999, "count": 0},
            {"from_ns": 1_000_000, "to_ns": 1_999_999, "count": 3},
        ],
        "latency": {
            "n": 3, "p50_ns": 1_500_000, "p90_ns": null, "p95_ns": null, "p99_ns": null,
            "p99_9_ns": null, "max_ns": 1_500_000,
        },
        "in_flight": {"zios": 0, "oldest_ns": null, "device": null, "wait": null, "wait_ns": null, "rule": null},
        "lost": 0,
    });
    assert_eq!(json, expected);
}

fn two_values(style: Style) -> Interval {
    let value = |name: &str, counts: &[u64]| Value {
        value: name.to_owned(),
        layer: None,
        distribution: Distribution::new(&latencies(counts), Boundary::AsLabelled),
    };
    Interval {
        style,
        ..with(Scope::By {
            by: "device",
            values: vec![value("vda", &[1, 30]), value("other", &[2])],
        })
    }
}

#[test]
fn a_breakdown_has_a_table_below_each_name() {
    expect![[r#"

        device vda:
          >=(ms) .. <(ms)   : I/O      |Distribution                          |
               0 -> 1       : 1        |##                                    |
               1 -> 2       : 30       |######################################|

        device other:
          >=(ms) .. <(ms)   : I/O      |Distribution                          |
               0 -> 1       : 2        |######################################|
    "#]]
    .assert_eq(&two_values(Style::Histograms).to_string());
}

#[test]
fn percentiles_are_a_line_for_each_value() {
    expect![[r#"

        device         n     p50     p90     p95     p99   p99.9     max
        vda           31  1.49ms  1.49ms  1.49ms       -       -  1.50ms
        other          2   750us       -       -       -       -   750us
    "#]]
    .assert_eq(&two_values(Style::Percentiles).to_string());
}

#[test]
fn a_breakdown_of_nothing_is_the_empty_table() {
    let scope = Scope::By {
        by: "size",
        values: Vec::new(),
    };
    let nothing = interval(&Histogram::default()).to_string();
    assert_eq!(with(scope).to_string(), nothing);
}

#[test]
fn json_of_a_breakdown_names_it_and_its_values() {
    let json = serde_json::to_value(two_values(Style::Percentiles)).unwrap();
    assert_eq!(json["by"], "device");
    assert_eq!(json["values"][0]["value"], "vda");
    assert_eq!(json["values"][0]["rows"][1]["count"], 30);
    assert_eq!(json["values"][1]["latency"]["n"], 2);
    assert!(json.get("rows").is_none());
}

/// A device with flushes of processes: each process's name, its number of flushes, and their latency in ns.
fn device(processes: &[(&str, u64, u64)]) -> DeviceInterval {
    let op = |&(name, count, ns): &(&str, u64, u64)| {
        let counts = Counts {
            completed: count,
            disk: Some(Box::new(Histogram::of(ns, count))),
            ..Counts::default()
        };
        OpInterval::of(Kind::Op(Op::Flush), Some(name.to_owned()), counts)
    };
    DeviceInterval {
        device: "vda".to_owned(),
        elapsed: Duration::from_secs(1),
        ops: processes.iter().map(op).collect(),
        busy: Duration::ZERO,
        depth_time_ns: 0,
        depths: None,
        in_flight: InFlight::default(),
    }
}

#[test]
fn layers_are_one_table_with_the_layers_of_a_value_below_each_other() {
    let many: Vec<String> = (0..20).map(|at| format!("p{at:02}")).collect();
    let mut of_disk = vec![("postgres", 800, 2_000_000), ("dd", 30, 1_000_000)];
    of_disk.extend(many.iter().map(|name| (name.as_str(), 3, 1_000_000)));
    let seen = Seen {
        disks: vec![device(&of_disk)],
        calls: vec![device(&[
            ("postgres", 120, 40_000_000),
            ("p19", 1, 5_000_000),
        ])],
        ..Seen::default()
    };
    let report = |by| IolatencyReport {
        layers: vec![Layer::Fs, Layer::Disk],
        schedule: Schedule::once(dashpot_engine::Duration::MAX),
        endless: false,
        past: None,
        queued: false,
        types: None,
        by,
        boundary: Boundary::AsLabelled,
        style: Style::Percentiles,
        timestamp: false,
        wide: false,
    };
    let surface = Surface {
        room: Room(Some(80)),
        pictures: Pictures::Hidden,
        zone_ns: 0,
    };
    let page = |by| report(by).take(&seen, &surface).remove(0);
    let by_process = page(Some(Dimension::Process)).to_string();
    let lines: Vec<&str> = by_process.lines().map(str::trim_end).collect();
    expect![[r#"
        layer  process          n     p50     p90     p95     p99   p99.9     max
        fs     postgres       120  40.0ms  40.0ms  40.0ms  40.0ms       -  40.0ms
        disk   postgres       800  2.00ms  2.00ms  2.00ms  2.00ms       -  2.00ms
        disk   dd              30  1.00ms  1.00ms  1.00ms       -       -  1.00ms
        fs     p19              1       -       -       -       -       -  5.00ms"#]]
    .assert_eq(&lines[1..6].join("\n"));
    let other = lines.last().copied().unwrap_or_default();
    let words: Vec<&str> = other.split_whitespace().take(3).collect();
    assert_eq!(words, ["disk", "other", "21"], "{other}");
    let json = serde_json::to_value(page(Some(Dimension::Process)).json()).expect("JSON");
    assert_eq!(
        (&json["by"], &json["values"][0]["layer"]),
        (&"process".into(), &"fs".into())
    );
    let whole = page(None).to_string();
    let counts = whole.lines().skip(1).map(|line| {
        let words: Vec<&str> = line.split_whitespace().take(2).collect();
        words.join(" ")
    });
    assert_eq!(
        counts.collect::<Vec<String>>(),
        ["layer n", "fs 121", "disk 890"]
    );
}

#[test]
fn long_names_are_shortened_where_the_screen_is_narrow() {
    let all = Distribution::new(&latencies(&[3, 1_000_000]), Boundary::AsLabelled);
    let value = "/system.slice/the-cgroup-of-a-service-with-a-long-name.service/".repeat(2);
    let values = vec![Value {
        value: value.clone(),
        layer: Some(Layer::Volume),
        distribution: all,
    }];
    let by = "cgroup";
    for style in [Style::Histograms, Style::Percentiles] {
        let whole = Interval {
            style,
            ..with(Scope::By {
                by,
                values: values.clone(),
            })
        };
        assert!(whole.to_string().contains(&value));
        for columns in [72, 80, 100] {
            let shown = Interval {
                room: Room(Some(columns)),
                ..whole.clone()
            };
            assert_fits(shown.room, &shown.to_string());
        }
    }
}
