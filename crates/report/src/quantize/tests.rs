//! Compares reports with the outputs in the zinject article, and tests the rules by which DTrace formats
//! them.

use dashpot_observe::InFlight;
use dashpot_text::table::assert_fits;
use serde_json::json;

use super::*;

/// Every output of the article's scripts, as the article prints it, separated by `%%`. The article's page
/// has lost the spaces at the ends of lines.
const EXAMPLES: &str = include_str!("../fixtures/quantize.txt");

/// A parsed output. `blocks` has each disk's name and the counts of the disk's rows, or an empty name and the
/// counts of all disks together. `summary` has the words of each line of the summary.
#[derive(Default)]
struct Parsed {
    blocks: Vec<(String, Vec<u64>)>,
    summary: Vec<Vec<String>>,
}

fn parse(example: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut name = String::new();
    for line in example.lines() {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        match line.split_once('|') {
            Some((value, rest)) => {
                let (_, counts) = parsed.blocks.last_mut().unwrap();
                set_row(counts, value.trim(), rest.trim_start_matches(['@', ' ']));
            }
            None if line.contains("Distribution") => {
                parsed.blocks.push((std::mem::take(&mut name), Vec::new()));
            }
            None if words.len() == 1 => name = words[0].clone(),
            None if words.iter().skip(1).all(|word| word.parse::<u64>().is_ok()) => {
                parsed.summary.extend((!words.is_empty()).then_some(words));
            }
            None => {}
        }
    }
    parsed
}

fn set_row(counts: &mut Vec<u64>, value: &str, count: &str) {
    let value: u64 = value.parse().unwrap();
    let row = (u64::BITS - value.leading_zeros()) as usize;
    counts.resize(row + 1, 0);
    counts[row] = count.parse().unwrap();
}

/// A histogram with `counts[i]` latencies inside row `i`.
fn latencies(counts: &[u64]) -> Histogram {
    let rows = counts.iter().enumerate();
    rows.map(|(row, &count)| ((1_000 << row) * 3 / 4, count))
        .collect()
}

/// An aggregation with the article's figures. Its distribution is computed from the counts; the other figures
/// are as the article prints them.
fn aggregation(counts: &[u64], figures: &[String]) -> Aggregation {
    let figures: Vec<u64> = figures.iter().map(|word| word.parse().unwrap()).collect();
    Aggregation {
        avg_us: Some(figures[0]),
        stddev_us: Some(figures[1]),
        iops: figures[2],
        throughput_kib_s: figures[3],
        ..Aggregation::new(&latencies(counts), 0, MINUTE)
    }
}

const MINUTE: Duration = Duration::from_secs(60);

fn report(scope: Scope) -> Quantize {
    Quantize {
        layer: None,
        length: Length::of(MINUTE),
        scope,
        left_out: LeftOut::default(),
        room: Room::UNBOUNDED,
    }
}

/// Renders a parsed output in the form of the article's script.
fn rendered(parsed: &Parsed) -> String {
    if parsed.summary.is_empty() {
        let rows = aggregation(&parsed.blocks[0].1, &vec!["0".into(); 4]).rows;
        let mut text = "\n\n".to_owned();
        write_distribution(&mut text, &rows).unwrap();
        return text;
    }
    if parsed.blocks[0].0.is_empty() {
        let aggregation = aggregation(&parsed.blocks[0].1, &parsed.summary[0]);
        return report(Scope::Total(aggregation)).to_string();
    }
    // The disks are in the reverse of the article's order, so that the test fails without sorting.
    let disks = parsed.blocks.iter().rev().map(|(name, counts)| {
        let figures = parsed
            .summary
            .iter()
            .find(|words| words[0] == *name)
            .unwrap();
        Disk {
            disk: name.clone(),
            aggregation: aggregation(counts, &figures[1..]),
        }
    });
    report(Scope::Disks(disks.collect())).to_string()
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
    for example in EXAMPLES.trim_end().split("\n%%\n") {
        rows += example.matches('|').count();
        let text = rendered(&parse(example));
        let lines = text.lines().map(str::trim_end);
        let expected = example.replace("GUID", "DISK");
        assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
    }
    assert_eq!(rows, 76);
}

#[test]
fn lines_end_with_the_blanks_that_a_terminal_gets() {
    let disk = Disk {
        disk: "c1t1d0".into(),
        aggregation: Aggregation::new(&latencies(&[0, 2]), 8_192, MINUTE),
    };
    let bar = "@".repeat(40);
    let expected = [
        "",
        "histogram of latencies (us):",
        "",
        "c1t1d0 ",
        "           value  ------------- Distribution ------------- count    ",
        "               0 |                                         0        ",
        &format!("               1 |{bar} 2        "),
        "               2 |                                         0        ",
        "",
        "DISK               avg latency (us)   stddev (us)   iops   throughput (KB/s)",
        "c1t1d0             1                  0             0      0                ",
        "",
    ];
    assert_eq!(
        report(Scope::Disks(vec![disk])).to_string(),
        expected.join("\n")
    );
}

#[test]
fn figures_are_of_truncated_microseconds_and_rates_of_the_time_that_passed() {
    let mut latencies = Histogram::default();
    [1_999, 3_999, 5_500]
        .iter()
        .for_each(|&ns| latencies.record(ns));
    let elapsed = Duration::from_millis(300);
    let aggregation = Aggregation::new(&latencies, 10_000, elapsed);
    // avg(1, 3, 5) = 3; stddev = √(35/3 − 9) = √2, truncated.
    assert_eq!(
        (aggregation.avg_us, aggregation.stddev_us),
        (Some(3), Some(1))
    );
    assert_eq!((aggregation.iops, aggregation.throughput_kib_s), (10, 33));
    assert_eq!(Aggregation::new(&latencies, 0, Duration::ZERO).iops, 0);
}

#[test]
fn without_io_there_are_the_rows_around_zero_and_no_average() {
    let aggregation = Aggregation::new(&Histogram::default(), 0, MINUTE);
    let values: Vec<i64> = aggregation.rows.iter().map(|row| row.value_us).collect();
    assert_eq!(values, [-1, 0, 1]);
    let text = report(Scope::Total(aggregation)).to_string();
    assert_eq!(
        text.lines().last(),
        Some("-                  -             0      0                ")
    );
}

#[test]
fn latencies_below_a_microsecond_are_in_row_zero_after_an_empty_one() {
    let rows = Aggregation::new(&latencies(&[5]), 0, MINUTE).rows;
    let rows: Vec<(i64, u64)> = rows.iter().map(|row| (row.value_us, row.count)).collect();
    assert_eq!(rows, [(-1, 0), (0, 5), (1, 0)]);
}

#[test]
fn distributions_sort_by_their_weight_and_summaries_by_their_average() {
    // `many` has the greater sum of values, and `slow` the greater average.
    let disks = [("slow", [0, 0, 1].as_slice()), ("many", &[0, 9, 0])].map(|(name, counts)| Disk {
        disk: name.into(),
        aggregation: Aggregation::new(&latencies(counts), 0, MINUTE),
    });
    let text = report(Scope::Disks(disks.into())).to_string();
    let names = text.lines().filter_map(|line| line.split(' ').next());
    let order: Vec<&str> = names
        .filter(|name| ["slow", "many"].contains(name))
        .collect();
    assert_eq!(order, ["slow", "many", "many", "slow"]);
}

#[test]
fn json_names_the_disk_beside_its_numbers() {
    let disk = Disk {
        disk: "c1t1d0".into(),
        aggregation: Aggregation::new(&latencies(&[0, 2]), 8_192, Duration::from_secs(1)),
    };
    let json = serde_json::to_value(report(Scope::Disks(vec![disk]))).unwrap();
    let expected = json!({
        "elapsed_ns": 60_000_000_000u64,
        "missed": 0,
        "stopped_ns": 0,
        "devices": [{
            "device": "c1t1d0",
            "rows": [
                {"from_ns": 0, "to_ns": 999, "count": 0},
                {"from_ns": 1_000, "to_ns": 1_999, "count": 2},
                {"from_ns": 2_000, "to_ns": 3_999, "count": 0},
            ],
            "mean_ns": 1_500, "stddev_ns": 0, "ops_per_s": 2.0, "bytes_per_s": 8_192.0,
            "latency": {
                "n": 2, "p50_ns": 1_500, "p90_ns": null, "p95_ns": null, "p99_ns": null,
                "p99_9_ns": null, "max_ns": 1_500,
            },
        }],
        "in_flight": {"zios": 0, "oldest_ns": null, "device": null, "wait": null, "wait_ns": null, "rule": null},
        "lost": 0,
    });
    assert_eq!(json, expected);
}

#[test]
fn what_is_still_in_flight_is_named_however_young() {
    let none = report(Scope::Total(aggregation(&[], &vec!["0".into(); 4]))).to_string();
    let young = Quantize {
        left_out: in_flight(InFlight {
            zios: Some(1),
            oldest_ns: Some(600_000_000),
            ..InFlight::default()
        }),
        ..report(Scope::Total(aggregation(&[], &vec!["0".into(); 4])))
    };
    let line = "In flight: 1, the oldest for 0.600 s.\n";
    assert_eq!(young.to_string(), none + line);
}

#[test]
fn one_that_was_cut_short_says_how_long_it_was() {
    let whole = report(Scope::Total(Aggregation::new(&latencies(&[1]), 0, MINUTE)));
    let asked = |asked| Length {
        asked: Some(asked),
        ..whole.length
    };
    let text = |length| {
        Quantize {
            length,
            ..whole.clone()
        }
        .to_string()
    };
    assert_eq!(text(asked(MINUTE)), whole.to_string());
    let line = "Interval: 60.000 s instead of 120 s.\n";
    assert_eq!(text(asked(2 * MINUTE)), whole.to_string() + line);
}

#[test]
fn one_of_several_layers_has_a_title_above_what_it_has_anyway() {
    let plain = report(Scope::Total(Aggregation::new(
        &latencies(&[0, 2]),
        8_192,
        MINUTE,
    )));
    let layered = Quantize {
        layer: Some(Layer::Store),
        ..plain.clone()
    };
    assert_eq!(
        layered.to_string(),
        format!("\nstore, below the injection:\n{plain}")
    );
    let json = serde_json::to_value(layered).unwrap();
    assert_eq!(json["layer"], "store");
    assert!(serde_json::to_value(plain).unwrap().get("layer").is_none());
}

#[test]
fn long_names_are_shortened_where_the_screen_is_narrow() {
    let busy = Histogram::of(3_000_000, 9);
    let of = |name: &str, bytes| Disk {
        disk: name.to_owned(),
        aggregation: Aggregation::new(&busy, bytes, std::time::Duration::from_millis(1)),
    };
    let disks = vec![
        of("a-disk-of-a-name-that-nobody-would-type-twice-0", 1 << 34),
        of("vda", 0),
    ];
    for columns in [79, 80, 100] {
        let report = Quantize {
            room: Room(Some(columns)),
            ..report(Scope::Disks(disks.clone()))
        };
        assert_fits(report.room, &report.to_string());
    }
}
