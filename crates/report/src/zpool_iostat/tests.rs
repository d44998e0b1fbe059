//! Compares titles with those of `zpool iostat`, and figures with those of hand-made statistics.

use dashpot_engine::pool::Traffic;
use dashpot_text::table::assert_fits;
use expect_test::expect;

use std::time::Duration;

use super::*;

fn pool(name: &str) -> PoolInterval {
    PoolInterval {
        name: name.to_owned(),
        elapsed: Duration::from_secs(2),
        allocated: 512 << 20,
        free: 3 << 29,
        volumes: Traffic::default(),
        queued: Traffic::default(),
        traffic: Traffic {
            reads: 20,
            bytes_read: 20 * 8_192,
            writes: 3_000,
            bytes_written: 3_000 << 17,
        },
        overhead: Default::default(),
        by_volume: Vec::new(),
        classes: Box::new(Class::ALL.map(ClassInterval::empty)),
        txgs: Vec::new(),
    }
}

/// A pool with ten reads of 10 ms that did not wait, and a hundred writes of 131,072 bytes.
fn busy() -> PoolInterval {
    let mut pool = pool("tank");
    let reads = &mut pool.classes[Class::SyncRead as usize];
    for _ in 0..10 {
        reads.total_wait.record(10_000_000);
        reads.disk_wait.record(10_000_000);
        reads.queue_wait.record(0);
        reads.alone.record(8_192);
    }
    let writes = &mut pool.classes[Class::AsyncWrite as usize];
    (writes.pending, writes.active) = (1_500, 10);
    for _ in 0..100 {
        writes.total_wait.record(3_000_000);
        writes.disk_wait.record(1_000_000);
        writes.queue_wait.record(2_000_000);
        writes.joined.record(131_072);
    }
    pool
}

fn text(view: View, pools: Vec<PoolInterval>) -> String {
    let report = ZpoolIostat {
        view,
        titled: true,
        room: Room::UNBOUNDED,
        pools,
    };
    // A bar marks the end of each line, because lines end with spaces, as in ZFS.
    report.to_string().replace('\n', "|\n")
}

#[test]
fn lines_with_waits_and_queues() {
    let view = |latency, queues| View::Lines { latency, queues };
    expect![[r#"
                      capacity     operations     bandwidth |
        pool        alloc   free   read  write   read  write|
        ----------  -----  -----  -----  -----  -----  -----|
        tank         512M  1.50G     10  1.46K    80K   188M|
    "#]]
    .assert_eq(&text(view(false, false), vec![busy()]));
    expect![[r#"
                      capacity     operations     bandwidth    total_wait     disk_wait    syncq_wait    asyncq_wait  scrub   trim  rebuild|
        pool        alloc   free   read  write   read  write   read  write   read  write   read  write   read  write   wait   wait   wait|
        ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----|
        tank         512M  1.50G     10  1.46K    80K   188M   12ms    3ms   12ms  786us    1ns      -      -    1ms      -      -      -|
    "#]].assert_eq(&text(view(true, false), vec![busy()]));
    expect![[r#"
                      capacity     operations     bandwidth    syncq_read    syncq_write   asyncq_read  asyncq_write   scrubq_read   trimq_write  rebuildq_write|
        pool        alloc   free   read  write   read  write   pend  activ   pend  activ   pend  activ   pend  activ   pend  activ   pend  activ   pend  activ|
        ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----|
        tank         512M  1.50G     10  1.46K    80K   188M      0      0      0      0      0      0  1.46K     10      0      0      0      0      0      0|
    "#]].assert_eq(&text(view(false, true), vec![busy()]));
}

#[test]
fn a_narrow_screen_has_the_most_important_groups() {
    let lines = |latency, queues| View::Lines { latency, queues };
    let views = [
        lines(false, false),
        lines(true, false),
        lines(false, true),
        lines(true, true),
        View::Latencies,
        View::Sizes,
    ];
    let within = |view, columns| ZpoolIostat {
        view,
        titled: true,
        room: Room(Some(columns)),
        pools: vec![
            busy(),
            pool("a-pool-of-a-name-that-nobody-would-type-twice"),
        ],
    };
    for view in views {
        for columns in [60, 80, 100, 132, 200] {
            let report = within(view, columns);
            assert_fits(report.room, &report.to_string());
        }
    }
    expect![[r#"
                     operations     bandwidth    total_wait     disk_wait    asyncq_wait
        pool         read  write   read  write   read  write   read  write   read  write
        ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
        tank           10  1.46K    80K   188M   12ms    3ms   12ms  786us      -    1ms
        a-poo…wice     10  1.46K    80K   188M      -      -      -      -      -      -
        ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
    "#]]
    .assert_eq(&within(lines(true, false), 80).to_string());
    expect![[r#"
                     operations    syncq_read    syncq_write   asyncq_read  asyncq_write
        pool         read  write   pend  activ   pend  activ   pend  activ   pend  activ
        ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
        tank           10  1.46K      0      0      0      0      0      0  1.46K     10
        a-poo…wice     10  1.46K      0      0      0      0      0      0      0      0
        ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----
    "#]]
    .assert_eq(&within(lines(false, true), 80).to_string());
}

#[test]
fn several_pools_end_with_a_line() {
    let view = View::Lines {
        latency: false,
        queues: false,
    };
    expect![[r#"
                            capacity     operations     bandwidth |
        pool              alloc   free   read  write   read  write|
        ----------------  -----  -----  -----  -----  -----  -----|
        tank               512M  1.50G     10  1.46K    80K   188M|
        a-very-long-name   512M  1.50G     10  1.46K    80K   188M|
        ----------------  -----  -----  -----  -----  -----  -----|
    "#]]
    .assert_eq(&text(view, vec![busy(), pool("a-very-long-name")]));
}

#[test]
fn tables_of_latencies_and_sizes() {
    expect![[r#"
        tank         total_wait     disk_wait    syncq_wait    asyncq_wait|
        latency      read  write   read  write   read  write   read  write  scrub   trim  rebuild|
        ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----|
        1ns             0      0      0      0      5      0      0      0      0      0      0|
        3ns             0      0      0      0      0      0      0      0      0      0      0|
        7ns             0      0      0      0      0      0      0      0      0      0      0|
        15ns            0      0      0      0      0      0      0      0      0      0      0|
        31ns            0      0      0      0      0      0      0      0      0      0      0|
        63ns            0      0      0      0      0      0      0      0      0      0      0|
        127ns           0      0      0      0      0      0      0      0      0      0      0|
        255ns           0      0      0      0      0      0      0      0      0      0      0|
        511ns           0      0      0      0      0      0      0      0      0      0      0|
        1us             0      0      0      0      0      0      0      0      0      0      0|
        2us             0      0      0      0      0      0      0      0      0      0      0|
        4us             0      0      0      0      0      0      0      0      0      0      0|
        8us             0      0      0      0      0      0      0      0      0      0      0|
        16us            0      0      0      0      0      0      0      0      0      0      0|
        32us            0      0      0      0      0      0      0      0      0      0      0|
        65us            0      0      0      0      0      0      0      0      0      0      0|
        131us           0      0      0      0      0      0      0      0      0      0      0|
        262us           0      0      0      0      0      0      0      0      0      0      0|
        524us           0      0      0      0      0      0      0      0      0      0      0|
        1ms             0      0      0     50      0      0      0      0      0      0      0|
        2ms             0      0      0      0      0      0      0     50      0      0      0|
        4ms             0     50      0      0      0      0      0      0      0      0      0|
        8ms             0      0      0      0      0      0      0      0      0      0      0|
        16ms            5      0      5      0      0      0      0      0      0      0      0|
        33ms            0      0      0      0      0      0      0      0      0      0      0|
        67ms            0      0      0      0      0      0      0      0      0      0      0|
        134ms           0      0      0      0      0      0      0      0      0      0      0|
        268ms           0      0      0      0      0      0      0      0      0      0      0|
        536ms           0      0      0      0      0      0      0      0      0      0      0|
        1s              0      0      0      0      0      0      0      0      0      0      0|
        2s              0      0      0      0      0      0      0      0      0      0      0|
        4s              0      0      0      0      0      0      0      0      0      0      0|
        8s              0      0      0      0      0      0      0      0      0      0      0|
        17s             0      0      0      0      0      0      0      0      0      0      0|
        34s             0      0      0      0      0      0      0      0      0      0      0|
        68s             0      0      0      0      0      0      0      0      0      0      0|
        137s            0      0      0      0      0      0      0      0      0      0      0|
        ---------------------------------------------------------------------------------------|
    "#]]
    .assert_eq(&text(View::Latencies, vec![busy()]));
    expect![[r#"
        tank          sync_read    sync_write    async_read    async_write      scrub         trim         rebuild  |
        req_size      ind    agg    ind    agg    ind    agg    ind    agg    ind    agg    ind    agg    ind    agg|
        ----------  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----  -----|
        512             0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        1K              0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        2K              0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        4K              0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        8K              5      0      0      0      0      0      0      0      0      0      0      0      0      0|
        16K             0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        32K             0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        64K             0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        128K            0      0      0      0      0      0      0     50      0      0      0      0      0      0|
        256K            0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        512K            0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        1M              0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        2M              0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        4M              0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        8M              0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        16M             0      0      0      0      0      0      0      0      0      0      0      0      0      0|
        ------------------------------------------------------------------------------------------------------------|
    "#]].assert_eq(&text(View::Sizes, vec![busy()]));
}

#[test]
fn rows_are_those_of_zfs() {
    let mut latencies = Histogram::default();
    for ns in [0, 1, 2, 3, 4, u64::MAX / 2] {
        latencies.record(ns);
    }
    let rows = zfs_rows(&latencies, LATENCY_ROWS);
    assert_eq!((rows[0], rows[1], rows[2], rows[36]), (2, 2, 1, 1));
    // Row `i` counts as 2^i + 2^(i-1), so the average is (2·1 + 1·3) ÷ 3.
    assert_eq!(zfs_average(&[2, 1]), 1);
    assert_eq!(zfs_average(&[]), 0);
}

#[test]
fn json_has_exact_means() {
    let report = ZpoolIostat {
        view: View::Latencies,
        titled: true,
        room: Room::UNBOUNDED,
        pools: vec![busy()],
    };
    let json = serde_json::to_value(report).unwrap();
    assert_eq!(json[0]["written_bytes"], 3_000_u64 << 17);
    let writes = &json[0]["classes"][Class::AsyncWrite as usize];
    assert_eq!(writes["class"], "async_write");
    assert_eq!(writes["queue_wait"]["mean_ns"], 2_000_000);
    assert_eq!(writes["joined"], 100);
}
