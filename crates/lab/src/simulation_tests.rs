use std::path::Path;

use dashpot_engine::inject::{GroupId, Service};
use dashpot_engine::pool::{Layout, LegacyConfig, ThrottleConfig, Tunable, WritePolicy};
use dashpot_engine::{Duration, Ratio};
use dashpot_sim::scenario::{Load, Pattern, Scenario, Target};

use super::parse;

const WHOLE: &str = r#"
[disk.a]
store = "ram"
size = "1G"
service = "5ms~1ms"
rate = "200M"
lanes = 4
flush = "1ms"
rotational = true
rules = ["-D 10ms:1 --name base", "-D 20ms:1 --with base"]
[disk.b]
store = "null"
size = "1G"
[disk.alone]
store = "null"
bandwidth = "100M"
rules = ["-D 1ms"]

[pool.tank]
disks = [["a", "b"]]
ram = "4G"
zfs_dirty_data_max = "512M"
zfs_delay_min_dirty_percent = 70
zfs_txg_timeout = "10s"
zfs_delay_scale = "1ms"
mirror_read = "primary"
delay_slots = 2
full_pipeline = "100M"

[volume."tank/foo"]
size = "512M"
write = "legacy"
[volume."tank/bar"]
size = "512M"
block_size = "128K"

[serve]
nbd = ["unix:-"]

[workload.db]
target = "tank/foo"
threads = 10
inside = "780us"
read = "30%"
pattern = "sequential"
sync = true
region = "1M..2M"
link = "1G"
start = "1s"
stop = "3s"
[workload.flood]
target = "alone"
rate = 1000
burst = 10

[sim]
lasts = "2m"
warmup = "30s"
seed = 7
sample = "100ms"
"#;

fn scenario(text: &str) -> Scenario {
    let lab = parse(text, Path::new("")).expect("a scenario");
    lab.scenario
}

#[test]
fn a_whole_lab_is_a_scenario() {
    let lab = scenario(WHOLE);
    let [a, _, alone] = lab.disks.as_slice() else {
        panic!("three disks");
    };
    assert!(matches!(a.model.service, Some(Service::Quantiles(_))));
    assert_eq!((a.model.rate, a.model.lanes), (Some(200 << 20), Some(4)));
    assert!(a.rotational);
    let groups: Vec<GroupId> = a.rules.iter().map(|group| group.0).collect();
    assert_eq!(groups, [GroupId(1), GroupId(1)]);
    assert_eq!(alone.rules[0].0, GroupId(3));
    assert_eq!(alone.model.bandwidth, Some(100 << 20));
    assert_eq!((lab.seed, lab.lasts), (7, Duration::from_secs(120)));
    assert_eq!(lab.sample_every, Some(Duration::from_millis(100)));
    assert_eq!(lab.warmup, Duration::from_secs(30));
}

#[test]
fn a_pool_has_its_disks_tunables_and_throttle() {
    let lab = scenario(WHOLE);
    let pool = &lab.pools[0];
    assert_eq!(pool.members, [[0, 1]]);
    for (tunable, value) in [
        (Tunable::DirtyDataMax, 512 << 20),
        (Tunable::DelayMinDirtyPercent, 70),
        (Tunable::TxgTimeout, 10),
        (Tunable::DelayScale, 1_000_000),
        (Tunable::MirrorRead, 1),
        (Tunable::MaxActive, 1_000),
    ] {
        assert_eq!(pool.tunables.get(tunable), value, "{tunable:?}");
    }
    assert_eq!(pool.tunables.ram(), 4 << 30);
    let legacy = LegacyConfig {
        delay_slots: Some(2),
        full_pipeline: Some((100 << 20) / 1_000),
    };
    assert_eq!(pool.throttle, ThrottleConfig::Legacy(legacy));
    let [foo, bar] = lab.volumes.as_slice() else {
        panic!("two volumes");
    };
    assert_eq!((foo.block_size, foo.write), (8 << 10, WritePolicy::Back));
    assert_eq!(
        (bar.block_size, bar.write),
        (128 << 10, WritePolicy::Through)
    );
}

#[test]
fn workloads_are_closed_or_open() {
    let lab = scenario(WHOLE);
    let Load::Closed {
        threads,
        inside,
        think,
        calls,
    } = &lab.workloads[0].load
    else {
        panic!("a closed loop");
    };
    assert_eq!((*threads, *inside), (10, Duration::from_micros(780)));
    assert_eq!((*think, calls.target), (Duration::ZERO, Target::Volume(0)));
    assert_eq!(calls.region, Some((1 << 20, 1 << 20)));
    assert_eq!((calls.block, calls.pattern), (8 << 10, Pattern::Sequential));
    assert_eq!((Some(calls.reads), calls.sync), (Ratio::new(3, 10), true));
    assert_eq!(lab.workloads[0].stops, Some(Duration::from_secs(3)));
    let Load::Open { rate, burst, calls } = &lab.workloads[1].load else {
        panic!("an open loop");
    };
    assert_eq!((*rate, *burst, calls.target), (1_000, 10, Target::Disk(2)));
}

/// The error for a lab that has two disks of 1M, followed by this text, which begins in line 7.
fn refusal(text: &str) -> String {
    let disks =
        "[disk.a]\nstore = \"ram\"\nsize = \"1M\"\n[disk.b]\nstore = \"ram\"\nsize = \"1M\"\n";
    let error = parse(&format!("{disks}{text}"), Path::new("/nowhere"));
    error.expect_err(text).to_string()
}

#[test]
fn mistakes_in_pools_name_their_line_place_and_remedy() {
    for (text, message) in [
        (
            "[pool.p]",
            "7: [pool.p]: a pool or a mirror without disks; add disks = [\"a\", \"b\"] or [[\"a\", \"b\"], …]",
        ),
        (
            "[pool.p]\ndisks = [\"a\", []]",
            "7: [pool.p]: a pool or a mirror without disks; add disks = [\"a\", \"b\"] or [[\"a\", \"b\"], …]",
        ),
        (
            "[pool.p]\ndisks = [\"a\",\n\"c1\"]",
            "9: [pool.p] disks: there is no disk 'c1'; there is a, b",
        ),
        (
            "[pool.p]\ndisks = [\"a\", \"a\"]",
            "8: [pool.p] disks: disk 'a' is in pool 'p' already; leave it out of one place",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\n[pool.q]\ndisks = [\"a\"]",
            "10: [pool.q] disks: disk 'a' is in pool 'p' already; leave it out of one place",
        ),
        (
            "[disk.c]\nstore = \"ram\"\nsize = \"2M\"\n[pool.p]\ndisks = [\"b\", [\"a\", \"c\"]]",
            "11: [pool.p] disks: the sides of a mirror have one size, and 'a' has 1M, 'c' 2M: \
             give both the same size",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nlayout = \"mirror\"",
            "9: [pool.p] layout: 'mirror' is not a layout: those are static and dynamic",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nlayout = \"dynamic\"\n[volume.\"p/v\"]\nsize = \"64K\"\n\
             [volume.\"p/w\"]\nsize = \"64K\"\nblock_size = \"4K\"",
            "14: [volume.p/w] block_size: blocks of 4K, and another volume of pool 'p' has blocks of 8K: \
             under layout = \"dynamic\" all have the same; give 8K, or make the layout static",
        ),
        (
            "[disk.c]\nstore = \"lossy:file:c.img\"\nsize = \"1M\"\n[pool.p]\ndisks = [\"a\", \"c\"]\n\
             layout = \"dynamic\"",
            "12: [pool.p] layout: 'dynamic' keeps in memory where blocks are, and a disk of this pool has \
             store = \"lossy:file:c.img\", whose bytes no daemon could find after a restart: give its disks \
             \"ram\" or \"lossy:ram\", or leave layout out",
        ),
        (
            "[pool.p]\ndisks = \"a\"",
            "8: [pool.p] disks: this is of type string; write a list: [\"…\", \"…\"] or [[\"…\", \"…\"], …]",
        ),
        (
            "[pool.\"p/q\"]\ndisks = [\"a\"]",
            "7: [pool.p/q]: the name of a pool has no '/': a '/' separates the names of a pool and a volume",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nzfs_dirty_data_maks = 1",
            "9: [pool.p] zfs_dirty_data_maks: unknown key; did you mean 'zfs_dirty_data_max'?",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nzfs_dirty_data_max = \"512MB\"",
            "9: [pool.p] zfs_dirty_data_max: 'MB' in '512MB' is not a unit of size: those are K, M, G and T (powers of 1024)",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nzfs_delay_min_dirty_percent = 101",
            "9: [pool.p] zfs_delay_min_dirty_percent: '101' is out of bounds: give 0% to 100%",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nzfs_txg_timeout = 5",
            "9: [pool.p] zfs_txg_timeout: '5' has no unit: did you mean 5ms?",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nzfs_txg_timeout = \"1500ms\"",
            "9: [pool.p] zfs_txg_timeout: '1500ms' is finer than 1s: give a multiple of it",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nmirror_read = \"second\"",
            "9: [pool.p] mirror_read: 'second' is not a choice: give one of balanced, primary",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\nzfs_vdev_async_write_min_active = 11",
            "9: [pool.p] zfs_vdev_async_write_min_active: zfs_vdev_async_write_min_active would be 11, above zfs_vdev_async_write_max_active, which would be 10; set both at once",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\ndelay_slots = 0",
            "9: [pool.p] delay_slots: '0' slots are not possible: give 1 or more, or \"independent\"",
        ),
        (
            "[pool.p]\ndisks = [\"a\"]\ndelay_slots = 1",
            "9: [pool.p] delay_slots: only the legacy throttle has this; set write = \"legacy\" in a volume",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
}

#[test]
fn mistakes_in_volumes_name_their_line_place_and_remedy() {
    for (text, message) in [
        (
            "[volume.foo]\nsize = \"1M\"",
            "9: [volume.foo]: 'foo' names no pool: write [volume.\"POOL/foo\"]",
        ),
        (
            "[volume.\"q/foo\"]\nsize = \"1M\"",
            "9: [volume.q/foo]: there is no pool 'q'; did you mean 'p'?",
        ),
        (
            "[volume.\"p/foo\"]",
            "9: [volume.p/foo]: no size; add size = \"512M\"",
        ),
        (
            "[volume.\"p/foo\"]\nsize = \"3M\"",
            "10: [volume.p/foo] size: '3M' is more than pool 'p' has left, 2M of 2M: make it smaller, or the disks larger",
        ),
        (
            "[volume.\"p/foo\"]\nsize = \"2M\"\n[volume.\"p/bar\"]\nsize = \"8K\"",
            "12: [volume.p/bar] size: '8K' is more than pool 'p' has left, 0 of 2M: make it smaller, or the disks larger",
        ),
        (
            "[volume.\"p/foo\"]\nsize = \"10000\"",
            "10: [volume.p/foo] size: '10000' is not a whole number of blocks of 8K: give a multiple of it",
        ),
        (
            "[volume.\"p/foo\"]\nsize = \"1M\"\nblock_size = \"12K\"",
            "11: [volume.p/foo] block_size: blocks of '12K' are not possible: give a power of two from 512 to 1M",
        ),
        (
            "[volume.\"p/foo\"]\nsize = \"1M\"\nwrite = \"back\"",
            "11: [volume.p/foo] write: 'back' is not a write policy: those are through, none, openzfs and legacy",
        ),
        (
            "[volume.\"p/foo\"]\nsize = \"1M\"\nwrite = \"none\"\n[volume.\"p/bar\"]\nsize = \"1M\"\nwrite = \"legacy\"",
            "14: [volume.p/bar] write: 'legacy' differs from 'none' of volume 'p/foo', and a pool has one throttle: give the same, or \"through\"",
        ),
        (
            "[volume.\"p/foo\"]\nsiez = 1",
            "10: [volume.p/foo] siez: unknown key; did you mean 'size'?",
        ),
    ] {
        let pool = "[pool.p]\ndisks = [\"a\", \"b\"]\n";
        assert_eq!(refusal(&format!("{pool}{text}")), message, "{text}");
    }
}

#[test]
fn mistakes_in_workloads_name_their_line_place_and_remedy() {
    for (text, message) in [
        (
            "",
            "9: [workload.w]: no target; add target = \"POOL/VOLUME\" or a disk, or a trace",
        ),
        (
            "target = \"b1\"",
            "10: [workload.w] target: there is no target 'b1'; did you mean 'b'?",
        ),
        (
            "target = \"a\"",
            "10: [workload.w] target: disk 'a' belongs to pool 'p', which writes it; name one of the pool's volumes",
        ),
        (
            "target = \"b\"\nregion = \"0..2M\"",
            "11: [workload.w] region: '0..2M' goes beyond the end of the target at 1M: end it there or before",
        ),
        (
            "target = \"b\"\nblock = \"2M\"",
            "11: [workload.w] block: '2M' is more than the region or the target has, 1M: make one of them fit",
        ),
        (
            "target = \"b\"\nthreads = 0",
            "11: [workload.w] threads: '0' is not possible: give a whole number of 1 or more",
        ),
        (
            "target = \"b\"\nthreads = 4000000000",
            "11: [workload.w] threads: '4000000000' is too many: at most 1000000",
        ),
        (
            "target = \"b\"\nrate = 18446744073709551615",
            "11: [workload.w] rate: '18446744073709551615' is too many: at most 1000000000",
        ),
        (
            "target = \"b\"\nread = 30",
            "11: [workload.w] read: '30' has no unit: write 30% for 30 in a hundred, or a ratio such as 1:10",
        ),
        (
            "target = \"b\"\nrate = 5\nthreads = 2",
            "12: [workload.w] threads: it does not go with 'rate'; leave one of them out",
        ),
        (
            "target = \"b\"\nburst = 5",
            "11: [workload.w] burst: only an open loop has bursts: add rate = 1000",
        ),
        (
            "target = \"b\"\npattern = \"zipf\"",
            "11: [workload.w] pattern: 'zipf' is not a pattern: those are random and sequential",
        ),
        (
            "target = \"b\"\nstart = \"2s\"\nstop = \"1s\"",
            "12: [workload.w] stop: it is not after the start, 2s",
        ),
        (
            "trace = \"t.csv\"\nblock = \"8K\"",
            "11: [workload.w] block: it does not go with 'trace'; leave one of them out",
        ),
        (
            "trace = \"t.csv\"",
            "10: [workload.w] trace: the trace '/nowhere/t.csv' cannot be read: No such file or directory (os error 2)",
        ),
        (
            "[sim]\nwarmup = \"60s\"",
            "9: [workload.w]: no target; add target = \"POOL/VOLUME\" or a disk, or a trace",
        ),
    ] {
        let pool = "[pool.p]\ndisks = [\"a\"]\n[workload.w]\n";
        assert_eq!(refusal(&format!("{pool}{text}")), message, "{text}");
    }
}

#[test]
fn mistakes_in_disks_and_settings_name_their_line_place_and_remedy() {
    for (text, message) in [
        (
            "[disk.c]\nstore = \"file:/a\"",
            "7: [disk.c]: no size: a simulation opens no file; add size = \"1G\"",
        ),
        (
            "[disk.c]\nstore = \"ram\"\nlanes = 2",
            "9: [disk.c] lanes: nothing takes time in a lane; add service = \"5ms\" or rate = \"100M\"",
        ),
        (
            "[disk.c]\nstore = \"ram\"\nservice = 5",
            "9: [disk.c] service: '5' has no unit: did you mean 5ms?",
        ),
        (
            "[disk.c]\nstore = \"ram\"\nrules = [\"-D 1ms --with 9\"]",
            "9: [disk.c] rules: --with 9: no rule '9': 'dashpot list' shows the rules",
        ),
        (
            "[disk.c]\nstore = \"ram\"\nsize = \"1M\"\nrules = [\"-D 1ms --range 1M..2M\"]",
            "7: [disk.c]: the rule '-D 1ms -T read,write,zero --range 1M..2M': its --range begins at 1M, beyond the end of disk c at 1M; begin it below",
        ),
        (
            "[sim]\nlasts = \"10s\"\nwarmup = \"10s\"",
            "9: [sim] warmup: it leaves nothing of the whole time, 10s: make it shorter, or make 'lasts' longer",
        ),
        (
            "[sim]\nlast = \"10s\"",
            "8: [sim] last: unknown key; did you mean 'lasts'?",
        ),
        (
            "[simm]\nlasts = \"10s\"",
            "7: simm: unknown key; did you mean 'sim'?",
        ),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
    let error = parse("[sim]\nseed = 1", Path::new("")).expect_err("no disk");
    assert_eq!(error.to_string(), "1: the lab has no disk: add [disk.NAME]");
}

#[test]
fn the_dynamic_layout_has_the_room_of_all_disks() {
    let text = |layout| {
        format!(
            "[disk.a]\nstore = \"ram\"\nsize = \"1M\"\n[disk.b]\nstore = \"lossy:ram\"\nsize = \"2M\"\n\
             [pool.p]\ndisks = [\"a\", \"b\"]\nlayout = \"{layout}\"\n[volume.\"p/v\"]\nsize = \"3M\""
        )
    };
    let lab = parse(&text("dynamic"), Path::new("/nowhere")).unwrap();
    assert_eq!(lab.scenario.pools[0].layout, Layout::Dynamic);
    assert!(lab.begin().is_ok());
    let error = parse(&text("static"), Path::new("/nowhere")).unwrap_err();
    assert!(error.to_string().contains("has left, 2M of 2M"), "{error}");
}
