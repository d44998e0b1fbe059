//! Lines, byte for byte.

use dashpot_api::{FinishedZio, ZioWaits};
use dashpot_observe::FinishedIo;
use expect_test::expect;

use super::*;

const MS: u64 = 1_000_000;
const WIDE: Shape = Shape {
    wide: true,
    room: Room::UNBOUNDED,
};
/// A terminal of 80 columns.
const NARROW: Shape = Shape {
    wide: false,
    room: Room(Some(80)),
};

fn zio(op: &str, offset_bytes: u64, waits: ZioWaits) -> FinishedZio {
    FinishedZio {
        disk: "c1t1d0".to_owned(),
        client: "uid=1000 pid=4711".to_owned(),
        op: op.to_owned(),
        fua: false,
        offset_bytes,
        length_bytes: 4_096,
        error: None,
        arrived_ns: 0,
        ended_ns: 0,
        total_ns: waits.recv_ns
            + waits.throttle_ns
            + waits.store_ns
            + waits.hold_ns
            + waits.lateness_ns,
        waits,
        rule: None,
        lane: None,
    }
}

fn held() -> FinishedZio {
    let waits = ZioWaits {
        store_ns: 1_300,
        hold_ns: 30 * MS,
        lateness_ns: 16_000,
        ..ZioWaits::default()
    };
    FinishedZio {
        rule: Some(3),
        lane: Some(0),
        ..zio("read", 8_192, waits)
    }
}

fn failed() -> FinishedZio {
    let waits = ZioWaits {
        recv_ns: 250_000,
        ..ZioWaits::default()
    };
    FinishedZio {
        fua: true,
        length_bytes: 1 << 20,
        error: Some("EIO".to_owned()),
        rule: Some(12),
        ..zio("write", 1 << 39, waits)
    }
}

#[test]
fn lines_of_disks_are_aligned_and_fit_120_columns() {
    let table = ZioTable::of_disks(["c1t1d0", "d"].into_iter(), WIDE, 3_600_000 * MS as i64);
    let text = table.header() + &table.line(5 * MS, &held()) + &table.line(61_250 * MS, &failed());
    expect![[r#"
        TIME         DISK   OP            OFFSET  SIZE  TOTAL   RECV SUSPEND  STORE   HOLD   LATE  REPLY  RULE CLIENT            ERROR
        01:00:00.005 c1t1d0 read            8192    4K 30.0ms      -       - 1.30us 30.0ms 16.0us      -   3/0 uid=1000 pid=4711
        01:01:01.250 c1t1d0 write+f 549755813888    1M  250us  250us       -      -      -      -      -    12 uid=1000 pid=4711 EIO
    "#]].assert_eq(&text);
    assert!(table.line(0, &held()).len() <= 121);
}

#[test]
fn a_table_of_the_past_has_no_empty_waits() {
    let waits = ZioWaits {
        throttle_ns: 9 * MS,
        store_ns: 7,
        ..ZioWaits::default()
    };
    let zios = [
        zio("write", 0, waits),
        zio("write", 4_096, ZioWaits::default()),
    ];
    let table = ZioTable::of_zios(&zios, WIDE);
    let lines = zios.iter().map(|zio| table.line(0, zio));
    expect![[r#"
        TIME         DISK   OP            OFFSET  SIZE  TOTAL THROTTLE  STORE  RULE CLIENT            ERROR
        00:00:00.000 c1t1d0 write              0    4K 9.00ms   9.00ms    7ns     - uid=1000 pid=4711
        00:00:00.000 c1t1d0 write           4096    4K    0ns        -      -     - uid=1000 pid=4711
    "#]].assert_eq(&(table.header() + &lines.collect::<String>()));
}

fn io() -> FinishedIo {
    FinishedIo {
        disk: "vda".to_owned(),
        rwbs: "WS".to_owned(),
        sector: 123_456_789,
        bytes: 16_384,
        total_ns: 5 * MS,
        queue_ns: Some(2 * MS),
        device_ns: 3 * MS,
        merged: 1,
        requeued: 0,
        pid: Some(4_711),
        comm: Some("postgres".to_owned()),
        error: None,
    }
}

#[test]
fn lines_of_the_kernels_disks_are_aligned() {
    let table = IoTable::of_disks(["vda", "nvme10n1"].into_iter(), WIDE, 0);
    let unseen = FinishedIo {
        queue_ns: None,
        pid: None,
        comm: None,
        error: Some(errno_name(-5)),
        ..io()
    };
    let text = table.header() + &table.line(0, &io()) + &table.line(MS, &unseen);
    expect![[r#"
        TIME         DISK     TYPE       SECTOR  SIZE  TOTAL  QUEUE DEVICE     PID PROCESS         ERROR
        00:00:00.000 vda      WS      123456789   16K 5.00ms 2.00ms 3.00ms    4711 postgres
        00:00:00.001 vda      WS      123456789   16K 5.00ms      - 3.00ms       - -               EIO
    "#]].assert_eq(&text);
}

#[test]
fn narrow_lines_fit_80_columns() {
    let long = "a-disk-of-a-name-that-nobody-would-type-twice-0";
    let table = ZioTable::of_disks(["c1t1d0", long].into_iter(), NARROW, 0);
    let named = FinishedZio {
        disk: long.to_owned(),
        ..failed()
    };
    let waits = ZioWaits {
        store_ns: 1_300,
        lateness_ns: 9_000,
        ..ZioWaits::default()
    };
    let fast = zio("read", 0, waits);
    let text = table.header()
        + &table.line(5 * MS, &held())
        + &table.line(6 * MS, &named)
        + &table.line(7 * MS, &fast);
    expect![[r#"
        TIME         DISK    OP       SIZE  TOTAL MOSTLY    RULE CLIENT            ERROR
        00:00:00.005 c1t1d0  read       4K 30.0ms HOLD       3/0 uid=1000 pid=4711
        00:00:00.006 a-d…e-0 write+f    1M  250us RECV        12 uid=1000 pid=4711 EIO
        00:00:00.007 c1t1d0  read       4K 10.3us SHARD        - uid=1000 pid=4711
    "#]]
    .assert_eq(&text);
    let table = IoTable::of_disks(["vda", "nvme10n1p12"].into_iter(), NARROW, 0);
    let kernel = table.header() + &table.line(0, &io());
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
    let at = At {
        at_ns: 7,
        what: &held(),
    };
    expect![[r#"{"at_ns":7,"arrived_ns":0,"client":"uid=1000 pid=4711","device":"c1t1d0","ended_ns":0,"error":null,"fua":false,"lane":0,"length_bytes":4096,"offset_bytes":8192,"op":"read","rule":3,"total_ns":30017300,"waits":{"hold_ns":30000000,"lateness_ns":16000,"queue_ns":0,"recv_ns":0,"reply_ns":0,"store_ns":1300,"suspend_ns":0,"throttle_ns":0}}"#]].assert_eq(&serde_json::to_string(&at).expect("JSON"));
    let at = At {
        at_ns: 7,
        what: &io(),
    };
    expect![[r#"{"at_ns":7,"bytes":16384,"comm":"postgres","device":"vda","device_ns":3000000,"error":null,"merged":1,"pid":4711,"queue_ns":2000000,"requeued":0,"rwbs":"WS","sector":123456789,"total_ns":5000000}"#]].assert_eq(&serde_json::to_string(&at).expect("JSON"));
}

#[test]
fn errors_have_names() {
    assert_eq!(
        [-5, 28, 4_095].map(errno_name),
        ["EIO", "ENOSPC", "errno 4095"]
    );
}
