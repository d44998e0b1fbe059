//! Compares the report's tables with sysstat's.

use dashpot_text::table::assert_fits;
use expect_test::expect;

use super::*;

/// The I/O of a disk in the second for which sysstat 12.6's iostat printed the tables below.
fn second() -> Interval {
    let completed = |zios, kilobytes: u64, ms: u128| Completed {
        zios,
        bytes: kilobytes * 1_024,
        time_ns: ms * 1_000_000,
        merged: 0,
    };
    Interval {
        disk: "vda".into(),
        elapsed: Duration::from_secs(1),
        reads: completed(103, 2_848, 12),
        discards: completed(14, 56, 1),
        depth_time: 13_000_000,
        busy: Duration::from_millis(16),
        ..Interval::default()
    }
}

fn report(columns: Columns) -> Iostat {
    let disks = vec![second()];
    Iostat {
        columns,
        disks,
        mention: Mention::default(),
        length: Length::of(Duration::from_secs(1)),
        is_since_start: false,
        room: Room::UNBOUNDED,
    }
}

#[test]
fn extended_columns_are_those_of_sysstat() {
    let expected = [
        "Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s   \
             wrqm/s  %wrqm w_await wareq-sz     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz     \
             f/s f_await  aqu-sz  %util",
        "vda            103.00   2848.00     0.00   0.00    0.12    27.65    0.00      0.00     \
             0.00   0.00    0.00     0.00   14.00     56.00     0.00   0.00    0.07     4.00    \
             0.00    0.00    0.01   1.60",
        "\n",
    ];
    assert_eq!(report(Columns::Extended).to_string(), expected.join("\n"));
}

#[test]
fn basic_columns_are_those_of_sysstat() {
    let expected = "\
Device             tps    kB_read/s    kB_wrtn/s    kB_dscd/s    kB_read    kB_wrtn    kB_dscd
vda             117.00      2848.00         0.00        56.00       2848          0         56

";
    assert_eq!(report(Columns::Basic).to_string(), expected);
}

/// The short reports must equal the tables of sysstat 12.6's `iostat -s` and `iostat -xs` for the same
/// second.
#[test]
fn short_columns_are_those_of_sysstat() {
    let basic = "\
Device             tps    kB_read/s     kB_w+d/s    kB_read     kB_w+d
vda             117.00      2848.00        56.00       2848         56

";
    assert_eq!(report(Columns::BasicShort).to_string(), basic);
    let extended = "\
Device             tps      kB/s    rqm/s   await  areq-sz  aqu-sz  %util
vda             117.00   2904.00     0.00    0.11    24.82    0.01   1.60

";
    assert_eq!(report(Columns::ExtendedShort).to_string(), extended);
}

fn on_a_screen_of(columns: u16, report: Iostat) -> Iostat {
    Iostat {
        room: Room(Some(columns)),
        ..report
    }
}

#[test]
fn a_narrow_screen_has_fewer_columns_and_short_names() {
    let mut busy = report(Columns::Extended);
    busy.disks.push(Interval {
        disk: "a-disk-of-a-name-that-nobody-would-type-twice-0".into(),
        reads: Completed {
            zios: 12_345_678,
            bytes: 1 << 40,
            time_ns: 1 << 60,
            merged: 0,
        },
        ..second()
    });
    expect![[r#"
        Device            r/s     rkB/s r_await     w/s     wkB/s w_await  aqu-sz  %util
        vda            103.00   2848.00    0.12    0.00      0.00    0.00    0.01   1.60
        a-disk…wice-0     1e7       1e9 93386.6    0.00      0.00    0.00    0.01   1.60

    "#]]
    .assert_eq(&on_a_screen_of(80, busy.clone()).to_string());
    let basic = on_a_screen_of(80, report(Columns::Basic)).to_string();
    assert_eq!(basic, report(Columns::BasicShort).to_string());
    use Columns::{Basic, BasicShort, Extended, ExtendedShort};
    for columns in [Basic, Extended, BasicShort, ExtendedShort] {
        for width in [40, 60, 79, 80, 100, 132, 250] {
            let report = Iostat {
                columns,
                ..busy.clone()
            };
            let report = on_a_screen_of(width, report);
            assert_fits(report.room, &report.to_string());
        }
    }
}

#[test]
fn a_length_that_is_off_is_said_below_the_disks() {
    let length = Length {
        elapsed: Duration::from_secs(6),
        asked: Some(Duration::from_secs(1)),
        missed: 5,
        ..Length::default()
    };
    let late = Iostat {
        length,
        ..report(Columns::Basic)
    };
    let line = "Interval: 6.000 s instead of 1 s; 5 intervals were missed.\n\n";
    let table = report(Columns::Basic).to_string();
    assert_eq!(late.to_string(), format!("{}\n{line}", table.trim_end()));
    let mut narrow = on_a_screen_of(40, late.clone());
    narrow.length.stopped = Duration::from_secs(1_000);
    assert_fits(narrow.room, &narrow.to_string());
    let json = serde_json::to_value(late).unwrap();
    assert_eq!(
        (&json[0]["elapsed_ns"], &json[0]["missed"]),
        (&1_000_000_000_u64.into(), &5.into())
    );
}

#[test]
fn figures_are_per_second_and_per_zio() {
    let disk = Interval {
        elapsed: Duration::from_secs(4),
        flushes: Completed {
            zios: 2,
            bytes: 0,
            time_ns: 5_000_000,
            merged: 0,
        },
        ..second()
    };
    let figures = EXTENDED.map(|column| (column.figure)(&disk));
    let of = |title| EXTENDED.iter().position(|column| column.title == title);
    let figure = |title| of(title).and_then(|index| figures[index]);
    assert_eq!(figure("r/s"), Some(25.75));
    assert_eq!(figure("f/s"), Some(0.5));
    assert_eq!(figure("f_await"), Some(2.5));
    assert_eq!(figure("w_await"), None);
}

#[test]
fn what_was_merged_is_a_share_of_what_was_asked_for() {
    let disk = Interval {
        elapsed: Duration::from_secs(2),
        writes: Completed {
            zios: 30,
            merged: 10,
            ..Completed::default()
        },
        ..second()
    };
    let figures = EXTENDED.map(|column| (column.title, (column.figure)(&disk)));
    let figure = |title| figures.iter().find(|figure| figure.0 == title).unwrap().1;
    assert_eq!((figure("wrqm/s"), figure("%wrqm")), (Some(5.0), Some(25.0)));
    assert_eq!((figure("rrqm/s"), figure("%rrqm")), (Some(0.0), Some(0.0)));
}

#[test]
fn no_time_gives_no_rates_and_no_nonsense() {
    let mut report = report(Columns::Extended);
    report.disks[0].elapsed = Duration::ZERO;
    let text = report.to_string();
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn io_that_did_not_end_is_named_after_the_table() {
    let mut report = report(Columns::Basic);
    report.disks[0].in_flight = InFlight {
        zios: Some(1),
        oldest_ns: Some(3_000_000_000),
        device: Some("vda".to_owned()),
        ..InFlight::default()
    };
    let text = report.to_string();
    assert!(
        text.ends_with("In flight: 1, the oldest for 3.000 s on vda.\n\n"),
        "{text}"
    );
}

#[test]
fn a_depth_at_which_the_clients_stood_is_told_in_the_extended_reports() {
    let at = |most, usual_percent| {
        let mut report = report(Columns::Extended);
        let (usual, depth) = (most, &mut report.disks[0].depth);
        *depth = Some(Depth {
            most,
            usual,
            usual_percent,
        });
        report
    };
    let line = "vda: clients offered at most 16 at a time, and 16 for 97 % of the time.\n\n";
    let bounded = at(16, 97);
    assert!(bounded.to_string().ends_with(line), "{bounded}");
    let json = serde_json::to_value(&bounded).unwrap();
    assert_eq!(json[0]["depth"]["most"], 16);
    let short = Iostat {
        columns: Columns::ExtendedShort,
        ..bounded.clone()
    };
    assert!(short.to_string().ends_with(line));
    assert_fits(Room(Some(40)), &on_a_screen_of(40, short).to_string());
    let basic = Iostat {
        columns: Columns::Basic,
        ..bounded
    };
    let unbounded = report(Columns::Extended);
    assert!(serde_json::to_value(&unbounded).unwrap()[0]["depth"].is_null());
    for quiet in [basic, at(16, 60), at(1, 100), at(60, 97), unbounded] {
        assert!(!quiet.to_string().contains("offered"), "{quiet}");
    }
}

#[test]
fn json_has_the_columns_without_rounding_and_the_counts_behind_them() {
    let json = serde_json::to_value(report(Columns::Extended)).unwrap();
    let disk = &json[0];
    assert_eq!(disk["device"], "vda");
    let counts = ["reads", "writes", "discards", "flushes"].map(|kind| disk[kind]["n"].clone());
    assert_eq!(counts, [103, 0, 14, 0]);
    assert_eq!(disk["reads"]["mean_bytes"], 2_848.0 * 1_024.0 / 103.0);
    assert_eq!(disk["busy_percent"], 1.6);
    assert!(disk["writes"]["mean_ns"].is_null());
}
