use std::time::Duration;

use dashpot_engine::Op;
use dashpot_engine::histogram::Histogram;
use dashpot_observe::{Counts, DeviceInterval, InFlight, Kind, OpInterval, Schedule, Seen};
use dashpot_text::surface::{Pictures, Surface};
use dashpot_text::table::assert_fits;
use expect_test::expect;

use super::*;
use crate::report::Report;

fn op(op: Op, by: Option<&str>, completed: u64, bytes: u64, ns: u64) -> OpInterval {
    let histogram = |number| Some(Box::new(Histogram::of(number, completed)));
    let counts = Counts {
        completed,
        bytes,
        disk: histogram(ns),
        measured: histogram(bytes / completed),
        ..Counts::default()
    };
    OpInterval::of(Kind::Op(op), by.map(str::to_owned), counts)
}

fn seen(ops: Vec<OpInterval>) -> Seen {
    Seen {
        at_ns: 3_600_000_000_000,
        disks: vec![DeviceInterval {
            device: "d".to_owned(),
            elapsed: Duration::from_secs(2),
            ops,
            busy: Duration::ZERO,
            depth_time_ns: 0,
            depths: None,
            in_flight: InFlight::default(),
        }],
        ..Seen::default()
    }
}

fn shown(name: &str, ops: Vec<OpInterval>, columns: u16) -> (String, String, Option<Rows>) {
    shown_of(name, &seen(ops), columns)
}

fn shown_of(name: &str, seen: &Seen, columns: u16) -> (String, String, Option<Rows>) {
    let mut report = StatReport {
        statistic: name.parse().expect("a statistic"),
        schedule: Schedule::once(dashpot_engine::Duration::MAX),
        past: None,
        wide: false,
    };
    let room = Room(Some(columns));
    let surface = Surface {
        room,
        pictures: Pictures::Hidden,
        zone_ns: 0,
    };
    let page = report.take(seen, &surface).pop().expect("a page");
    assert_fits(room, &page.to_string());
    let json = serde_json::to_string(&page.json()).expect("JSON");
    (page.to_string(), json, page.rows())
}

#[test]
fn bytes_rank_where_bytes_are_asked_for() {
    let ops = || {
        vec![
            op(Op::Read, Some("many"), 900, 900 * 4_096, 1_000_000),
            op(Op::Write, Some("large"), 100, 100 << 20, 5_000_000),
        ]
    };
    let (by_bytes, ..) = shown("disk.bytes[client]", ops(), 80);
    expect![[r#"
        01:00:00  2.00 s: 1,000 I/Os (500/s), 108,544,000 bytes (51.8M/s)
        client  I/Os     %  bytes     %
        large    100  10.0   100M  96.6  ########################
        many     900  90.0  3.52M   3.4  #

    "#]]
    .assert_eq(&by_bytes);
    let (by_count, ..) = shown("disk.ops[client]", ops(), 80);
    expect![[r#"
        01:00:00  2.00 s: 1,000 I/Os (500/s), 108,544,000 bytes (51.8M/s)
        client  I/Os     %  bytes     %
        many     900  90.0  3.52M   3.4  ########################
        large    100  10.0   100M  96.6  ###

    "#]]
    .assert_eq(&by_count);
}

#[test]
fn a_name_is_shortened_only_if_the_screen_has_no_room_for_it() {
    let ops = || vec![op(Op::Read, Some("uid=1000 pid=26075"), 9, 900, 1_000_000)];
    for (columns, is_whole) in [(80, true), (200, true), (50, false)] {
        let (text, ..) = shown("disk.latency[client]", ops(), columns);
        assert_eq!(
            text.contains("uid=1000 pid=26075 "),
            is_whole,
            "{columns}:\n{text}"
        );
    }
}

#[test]
fn a_number_has_its_percentiles_in_its_unit() {
    let ops = || {
        vec![
            op(Op::Read, Some("one"), 1_000, 4_096_000, 1_000_000),
            op(Op::Read, Some("two"), 10, 40_960, 5_000_000),
        ]
    };
    let (text, _, rows) = shown("disk.latency[client]", ops(), 80);
    expect![[r#"
        01:00:00  2.00 s: 1,010 I/Os (505/s), 4,136,960 bytes (1.97M/s)
        p50 1.00ms, p90 1.00ms, p99 1.00ms, max 5.00ms
        client   I/Os     %  bytes     %     p50     p90     p99     max
        one     1,000  99.0  3.91M  99.0  1.00ms  1.00ms  1.00ms  1.00ms
        two        10   1.0    40K   1.0  5.00ms  5.00ms       -  5.00ms

    "#]]
    .assert_eq(&text);
    let rows = rows.expect("rows");
    assert_eq!(rows.head[2..6], ["client", "count", "bytes", "p50_ns"]);
    assert_eq!(rows.rows[1][2..6], ["two", "10", "40960", "5000000"]);
    let (_, json, _) = shown("disk.size[client]", ops(), 80);
    assert!(json.contains(r#""p50_bytes":4096,"#), "{json}");
}

/// A disk that was busy for `busy` of two seconds.
fn disk(name: &str, busy: Duration, ops: Vec<OpInterval>) -> DeviceInterval {
    DeviceInterval {
        device: name.to_owned(),
        busy,
        ..seen(ops).disks.remove(0)
    }
}

#[test]
fn the_busiest_device_comes_first_even_if_nothing_of_it_ended() {
    let read = vec![op(Op::Read, None, 1_000, 4_096_000, 1_000_000)];
    let disks = Seen {
        disks: vec![
            disk("idle", Duration::ZERO, Vec::new()),
            disk("d", Duration::from_millis(500), read),
            disk("hung", Duration::from_secs(2), Vec::new()),
            disk("x", Duration::from_secs(2), Vec::new()),
        ],
        ..seen(Vec::new())
    };
    let (text, json, rows) = shown_of("disk.busy[device!=x]", &disks, 80);
    expect![[r#"
        01:00:00  2.00 s: 1,000 I/Os (500/s), 4,096,000 bytes (1.95M/s)
        device   I/Os      %  bytes      %  busy %
        hung        0    0.0      0    0.0   100.0  ########################
        d       1,000  100.0  3.91M  100.0    25.0  ######
        idle        0    0.0      0    0.0     0.0

    "#]]
    .assert_eq(&text);
    let d = r#"{"value":"d","count":1000,"bytes":4096000,"busy_percent":25.0}"#;
    assert!(json.contains(d) && !json.contains(r#""x""#), "{json}");
    let rows = rows.expect("rows");
    assert_eq!(rows.head[2..], ["device", "count", "bytes", "busy_percent"]);
    assert_eq!(rows.rows[1][2..], ["d", "1000", "4096000", "25"]);
}

#[test]
fn a_time_that_no_source_knows_is_neither_busy_nor_idle() {
    let unknown = DeviceInterval {
        elapsed: Duration::ZERO,
        ..disk("d", Duration::ZERO, Vec::new())
    };
    let unknown = Seen {
        disks: vec![unknown],
        ..seen(Vec::new())
    };
    let (text, json, rows) = shown_of("disk.busy", &unknown, 80);
    assert!(
        text.contains("\nd          0  -      0  -       -"),
        "{text}"
    );
    assert!(json.contains(r#""busy_percent":null"#), "{json}");
    assert_eq!(rows.expect("rows").rows[0][5], "");
}

#[test]
fn long_names_and_large_figures_fit() {
    let name = "uid=1000 pid=12345 and a long name that a client gave itself";
    let ops = vec![op(Op::Read, Some(name), 99_999_999, 99_999_999 << 20, 1)];
    for columns in [80, 100] {
        for statistic in ["disk.ops[client]", "disk.latency[client]"] {
            shown(statistic, ops.clone(), columns);
        }
        let busy = disk(name, Duration::from_secs(2), ops.clone());
        let busy = Seen {
            disks: vec![busy],
            ..seen(Vec::new())
        };
        shown_of("disk.busy", &busy, columns);
    }
}

#[test]
fn an_interval_without_io_says_so_and_no_more() {
    let (text, json, rows) = shown("disk.latency", Vec::new(), 80);
    assert_eq!(text, "01:00:00  2.00 s: 0 I/Os (0/s), 0 bytes (0/s)\n");
    assert!(json.contains(r#""by":"latency","values":[]"#), "{json}");
    assert_eq!(rows.expect("rows").rows, Vec::<Vec<String>>::new());
}
