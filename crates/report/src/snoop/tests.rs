//! Compares the lines of the report with expected lines, byte for byte.

use dashpot_engine::{Duration, Op, Waits};
use dashpot_observe::{Facts, FinishedIo, IoWaits, Kind, Layer, Thread, Who};
use dashpot_text::table::Room;
use expect_test::expect;

use super::{Table, line as json_line, of_kernel, of_zios, waits_of, waits_of_lone_disks};

const MS: u64 = 1_000_000;
/// A terminal of 80 columns.
const NARROW: Room = Room(Some(80));
const CLIENT: &str = "uid=1000 pid=4711";

fn zio(op: Op, offset_bytes: u64, waits: Waits) -> FinishedIo {
    FinishedIo {
        layer: Layer::Disk,
        device: "c1t1d0".into(),
        kind: Kind::Op(op),
        fua: false,
        letters: None,
        offset_bytes,
        length_bytes: 4_096,
        depth: Some(1),
        begun_ns: 0,
        ended_ns: waits.total().as_nanos(),
        at_ns: 0,
        waits: IoWaits::Zio(waits),
        who: Some(Who::Client(CLIENT.into())),
        facts: Facts::default(),
        inode: None,
        merged: 0,
        requeued: 0,
        error: None,
    }
}

fn held() -> FinishedIo {
    let waits = Waits {
        store: Duration::from_nanos(1_300),
        hold: Duration::from_millis(30),
        lateness: Duration::from_micros(16),
        ..Waits::default()
    };
    FinishedIo {
        facts: Facts {
            rule: Some(3),
            lane: Some(0),
            ..Facts::default()
        },
        ..zio(Op::Read, 8_192, waits)
    }
}

fn failed() -> FinishedIo {
    let waits = Waits {
        recv: Duration::from_micros(250),
        ..Waits::default()
    };
    FinishedIo {
        fua: true,
        length_bytes: 1 << 20,
        error: Some("EIO".to_owned()),
        facts: Facts {
            rule: Some(12),
            ..Facts::default()
        },
        ..zio(Op::Write, 1 << 39, waits)
    }
}

fn at(at_ns: u64, io: FinishedIo) -> FinishedIo {
    FinishedIo { at_ns, ..io }
}

/// The table of zios that finish from now on.
fn zios(names: &[&str], wide: bool, room: Room, zone_ns: i64) -> Table {
    let columns = of_zios(waits_of_lone_disks(), wide);
    Table::new(names.iter().copied(), columns, room, zone_ns)
}

fn lines(table: &Table, ios: &[FinishedIo]) -> String {
    let lines = ios.iter().map(|io| table.line(io));
    table.header() + &lines.collect::<String>()
}

#[test]
fn lines_of_disks_are_aligned_and_fit_120_columns() {
    let table = zios(
        &["c1t1d0", "d"],
        true,
        Room::UNBOUNDED,
        3_600_000 * MS as i64,
    );
    let text = lines(&table, &[at(5 * MS, held()), at(61_250 * MS, failed())]);
    expect![[r#"
        TIME         DISK   OP            OFFSET  SIZE  TOTAL   RECV SUSPEND  STORE   HOLD   LATE  REPLY  RULE CLIENT            ERROR
        01:00:00.005 c1t1d0 read            8192    4K 30.0ms      -       - 1.30us 30.0ms 16.0us      -   3/0 uid=1000 pid=4711
        01:01:01.250 c1t1d0 write+f 549755813888    1M  250us  250us       -      -      -      -      -    12 uid=1000 pid=4711 EIO
    "#]].assert_eq(&text);
    assert!(table.line(&held()).len() <= 121);
}

#[test]
fn a_table_of_the_past_has_no_empty_waits() {
    let waits = Waits {
        throttle: Duration::from_millis(9),
        store: Duration::from_nanos(7),
        ..Waits::default()
    };
    let ios = [
        zio(Op::Write, 0, waits),
        zio(Op::Write, 4_096, Waits::default()),
    ]
    .map(|zio| FinishedIo {
        layer: Layer::Volume,
        ..zio
    });
    let columns = of_zios(waits_of(&ios), true);
    let table = Table::new(["c1t1d0"].into_iter(), columns, Room::UNBOUNDED, 0);
    expect![[r#"
        TIME         DISK   OP            OFFSET  SIZE  TOTAL THROTTLE  STORE  RULE CLIENT            ERROR
        00:00:00.000 c1t1d0 write              0    4K 9.00ms   9.00ms    7ns     - uid=1000 pid=4711
        00:00:00.000 c1t1d0 write           4096    4K    0ns        -      -     - uid=1000 pid=4711
    "#]].assert_eq(&lines(&table, &ios));
}

fn io() -> FinishedIo {
    FinishedIo {
        device: "vda".into(),
        letters: Some("WS".into()),
        offset_bytes: 123_456_789 * 512,
        length_bytes: 16_384,
        begun_ns: 2 * MS,
        ended_ns: 7 * MS,
        waits: IoWaits::Kernel {
            queue_ns: Some(2 * MS),
            device_ns: 3 * MS,
        },
        who: Some(Who::Thread(Thread {
            process: Some("postgres".into()),
            pid: Some(4_711),
            thread: Some("io-1".into()),
            tid: Some(4_712),
            cgroup: Some("/db".into()),
        })),
        merged: 1,
        ..zio(Op::Write, 0, Waits::default())
    }
}

#[test]
fn lines_of_the_kernels_disks_are_aligned() {
    let names = ["vda", "nvme10n1"].into_iter();
    let table = Table::new(names, of_kernel(true), Room::UNBOUNDED, 0);
    let unseen = FinishedIo {
        waits: IoWaits::Kernel {
            queue_ns: None,
            device_ns: 3 * MS,
        },
        who: None,
        error: Some("EIO".to_owned()),
        ..at(MS, io())
    };
    let text = lines(&table, &[io(), unseen]);
    expect![[r#"
        TIME         DISK     TYPE       SECTOR  SIZE  TOTAL  QUEUE DEVICE     PID PROCESS             TID THREAD          ERROR
        00:00:00.000 vda      WS      123456789   16K 5.00ms 2.00ms 3.00ms    4711 postgres           4712 io-1
        00:00:00.001 vda      WS      123456789   16K 5.00ms      - 3.00ms       - -                     - -               EIO
    "#]].assert_eq(&text);
}

#[test]
fn narrow_lines_fit_80_columns() {
    let long = "a-disk-of-a-name-that-nobody-would-type-twice-0";
    let table = zios(&["c1t1d0", long], false, NARROW, 0);
    let named = FinishedIo {
        device: long.into(),
        ..failed()
    };
    let waits = Waits {
        store: Duration::from_nanos(1_300),
        lateness: Duration::from_micros(9),
        ..Waits::default()
    };
    let fast = zio(Op::Read, 0, waits);
    let ios = [at(5 * MS, held()), at(6 * MS, named), at(7 * MS, fast)];
    let text = lines(&table, &ios);
    expect![[r#"
        TIME         DISK    OP       SIZE  TOTAL MOSTLY    RULE CLIENT            ERROR
        00:00:00.005 c1t1d0  read       4K 30.0ms HOLD       3/0 uid=1000 pid=4711
        00:00:00.006 a-d…e-0 write+f    1M  250us RECV        12 uid=1000 pid=4711 EIO
        00:00:00.007 c1t1d0  read       4K 10.3us SHARD        - uid=1000 pid=4711
    "#]]
    .assert_eq(&text);
    let names = ["vda", "nvme10n1p12"].into_iter();
    let kernel = lines(&Table::new(names, of_kernel(false), NARROW, 0), &[io()]);
    expect![[r#"
        TIME         DISK        TYPE  SIZE  TOTAL  QUEUE     PID PROCESS         ERROR
        00:00:00.000 vda         WS     16K 5.00ms 2.00ms    4711 postgres
    "#]]
    .assert_eq(&kernel);
    let widths = text
        .lines()
        .chain(kernel.lines())
        .map(|line| line.chars().count());
    assert!(widths.max() <= Some(80));
}

#[test]
fn a_line_of_json_has_its_moment() {
    let json = |io| serde_json::to_string(&json_line(&at(7, io))).expect("JSON");
    expect![[r#"{"at_ns":7,"arrived_ns":0,"class":null,"client":"uid=1000 pid=4711","depth":1,"device":"c1t1d0","ended_ns":30017300,"error":null,"fua":false,"lane":0,"length_bytes":4096,"offset_bytes":8192,"op":"read","rule":3,"total_ns":30017300,"txg_syncing":null,"waits":{"hold_ns":30000000,"lateness_ns":16000,"queue_ns":0,"recv_ns":0,"reply_ns":0,"store_ns":1300,"suspend_ns":0,"throttle_ns":0}}"#]].assert_eq(&json(held()));
    expect![[r#"{"at_ns":7,"bytes":16384,"cgroup":"/db","device":"vda","device_ns":3000000,"error":null,"inode":null,"merged":1,"pid":4711,"process":"postgres","queue_ns":2000000,"requeued":0,"rwbs":"WS","sector":123456789,"thread":"io-1","tid":4712,"total_ns":5000000}"#]].assert_eq(&json(io()));
}
