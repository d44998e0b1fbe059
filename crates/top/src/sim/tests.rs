use std::path::{Path, PathBuf};

use dashpot_engine::pool::TxgState;
use dashpot_engine::{Duration, Instant};
use dashpot_lab::load_sim_lab;
use dashpot_observe::Layer;

use super::Sim;
use crate::ask::Ask;
use crate::frame::{DiskFrame, Frame};

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A simulation of this lab at its start.
fn sim(lab: &str) -> Sim {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("lab.toml");
    std::fs::write(&path, lab).expect("a lab");
    begin(&path)
}

fn begin(path: &Path) -> Sim {
    let lab = load_sim_lab(path).expect("a lab");
    let rules = lab.rules.clone();
    Sim::new(lab.begin().expect("a simulation"), rules).expect("no violation")
}

/// A simulation of a lab in the repository's directory `labs`.
fn of_repository(name: &str) -> Sim {
    let labs = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../labs");
    begin(&labs.join(name))
}

/// The frame at this moment.
fn frame(sim: &mut Sim, millis: u64) -> Frame {
    sim.go_to(at(millis)).expect("no violation");
    sim.frame()
}

fn disk<'a>(frame: &'a Frame, name: &str) -> &'a DiskFrame {
    let disk = frame.disks.iter().find(|disk| disk.name == name);
    disk.expect(name)
}

fn ask(sim: &mut Sim, ask: Ask) -> Result<String, String> {
    sim.carry_out(&ask).expect("no violation")
}

fn arm(sim: &mut Sim, words: &str) -> Result<String, String> {
    let (disk, words) = ("d".to_owned(), words.to_owned());
    ask(sim, Ask::Arm { disk, words })
}

/// One disk with 1,000 reads per second that take 1 ms each.
const LONE: &str = r#"
[disk.d]
store = "null"
size = "1G"
service = "1ms"

[workload.reader]
target = "d"
rate = 1000
read = "100%"

[sim]
lasts = "10s"
"#;

#[test]
fn an_interval_is_what_was_done_in_it() {
    let mut sim = sim(LONE);
    frame(&mut sim, 1_000);
    let seen = frame(&mut sim, 3_000);
    let read = disk(&seen, "d");
    let done = read.done.as_ref().expect("an interval");
    assert_eq!((done.reads, done.writes), (1_000.0, 0.0));
    assert_eq!(
        (done.p50_ns, done.max_ns),
        (Some(1_000_000), Some(1_000_000))
    );
    assert_eq!(read.clients[0].name, "reader");
    assert_eq!(read.clients[0].per_second, Some(1_000.0));
    // A glance does not end the interval.
    sim.go_to(at(3_500)).unwrap();
    let glance = sim.glance();
    assert!(disk(&glance, "d").done.is_none());
    assert_eq!(disk(&glance, "d").clients[0].per_second, Some(1_000.0));
    let seen = frame(&mut sim, 4_000);
    assert_eq!(
        disk(&seen, "d").done.as_ref().map(|done| done.reads),
        Some(1_000.0)
    );
}

#[test]
fn it_ends_with_the_lab() {
    let mut sim = sim(LONE);
    let seen = frame(&mut sim, 9_999);
    assert!(!seen.is_last() && !sim.is_over());
    let seen = frame(&mut sim, 60_000);
    assert!(seen.is_last() && sim.is_over());
    assert_eq!(sim.now(), at(10_000));
    assert_eq!(
        arm(&mut sim, "-D 1ms"),
        Err("the simulation has ended".to_owned())
    );
}

#[test]
fn a_rule_lives_on_a_simulated_disk() {
    let mut sim = sim(LONE);
    sim.go_to(at(1_000)).unwrap();
    let armed = arm(&mut sim, "-D 5ms -T read --name slow").unwrap();
    assert_eq!(armed, "rule 1 (slow) on d: -D 5ms -T read");
    frame(&mut sim, 1_100);
    let seen = frame(&mut sim, 2_100);
    let done = disk(&seen, "d").done.clone().unwrap();
    assert_eq!((done.reads, done.max_ns), (1_000.0, Some(5_000_000)));
    assert_eq!(seen.rules[0].name.as_deref(), Some("slow"));
    assert!(seen.rules[0].counters.held >= 1_000);
    let words = "-D 2ms".to_owned();
    let updated = ask(&mut sim, Ask::Update { rule: 1, words }).unwrap();
    assert_eq!(updated, "rule 1 (slow) on d: -D 2ms -T read,write,zero");
    assert_eq!(sim.glance().rules[0].rule, "-D 2ms -T read,write,zero");
    assert_eq!(
        ask(&mut sim, Ask::Clear { rule: 1 }).unwrap(),
        "cleared rule 1; 5 I/Os are still held, until they are due"
    );
    assert!(sim.glance().rules.is_empty());
    // Ids are never used again, but names are.
    let armed = arm(&mut sim, "-D 5ms --name slow").unwrap();
    assert!(armed.starts_with("rule 2 (slow)"), "{armed}");
}

#[test]
fn what_cannot_be_is_refused() {
    let mut sim = sim(LONE);
    for (words, why) in [
        ("-D 10:1", "did you mean 10ms:1?"),
        ("-D 1ms --range 2G..3G", "beyond the end of disk d"),
        ("-D 1ms --with 7", "--with 7"),
    ] {
        let refused = arm(&mut sim, words).expect_err(words);
        assert!(refused.contains(why), "{refused}");
    }
    let words = "-D 1ms".to_owned();
    let refused = ask(&mut sim, Ask::Update { rule: 9, words });
    assert_eq!(refused, Err("there is no rule 9".to_owned()));
    assert_eq!(
        ask(&mut sim, Ask::Clear { rule: 9 }),
        Err("no rule 9".to_owned())
    );
    let nowhere = "e".to_owned();
    let refused = ask(&mut sim, Ask::Resume { disk: nowhere });
    assert_eq!(refused, Err("there is no disk 'e'".to_owned()));
    assert!(sim.glance().rules.is_empty());
}

#[test]
fn a_disk_is_suspended_and_resumed() {
    let mut sim = sim(LONE);
    sim.go_to(at(1_000)).unwrap();
    let name = || "d".to_owned();
    let said = ask(&mut sim, Ask::Suspend { disk: name() }).unwrap();
    assert!(said.starts_with("d is suspended"), "{said}");
    frame(&mut sim, 1_100);
    let seen = frame(&mut sim, 2_100);
    let suspended = disk(&seen, "d");
    assert!(suspended.is_suspended());
    assert_eq!(suspended.done.as_ref().map(|done| done.all), Some(0.0));
    assert_eq!(suspended.wait.as_deref(), Some("suspended"));
    let said = ask(&mut sim, Ask::Resume { disk: name() }).unwrap();
    assert!(said.starts_with("d goes on; 11"), "{said}");
    assert!(!disk(&sim.glance(), "d").is_suspended());
}

#[test]
fn what_the_lab_does_by_itself_goes_on() {
    let changes = r#"
[[at]]
time = "2s"
inject = "-D 5ms --name planned"
[[at]]
time = "4s"
clear = "planned"
"#;
    let mut sim = sim(&format!("{LONE}{changes}"));
    sim.go_to(at(1_000)).unwrap();
    let refused = arm(&mut sim, "-D 1ms").expect_err("a rule is to come");
    assert!(
        refused.contains("the lab itself arms rules until 2s"),
        "{refused}"
    );
    let seen = frame(&mut sim, 3_000);
    assert_eq!(seen.rules[0].name.as_deref(), Some("planned"));
    // The rule that the lab arms has this name. The name is free again once the rule is cleared.
    assert!(arm(&mut sim, "-D 1ms --name planned").is_err());
    assert!(arm(&mut sim, "-D 1ms").unwrap().starts_with("rule 2 "));
    ask(&mut sim, Ask::Clear { rule: 1 }).unwrap();
    let seen = frame(&mut sim, 5_000);
    assert_eq!(
        seen.notes,
        ["the lab's change at 4s was refused: no rule 1"]
    );
    assert!(
        arm(&mut sim, "-D 1ms --name planned")
            .unwrap()
            .starts_with("rule 3 ")
    );
}

/// The clients' I/Os in flight at the first two devices, which are volumes.
fn in_flight_at_volumes(frame: &Frame) -> f64 {
    frame.disks[..2]
        .iter()
        .map(|disk| disk.in_flight as f64)
        .sum()
}

#[test]
fn a_pool_shows_its_throttle_its_volumes_and_its_txgs() {
    // The writers are faster than the disk, so the throttle holds them back.
    let mut sim = of_repository("scenario3-openzfs.toml");
    let before = frame(&mut sim, 29_000);
    let seen = frame(&mut sim, 30_000);
    let layers: Vec<Layer> = seen.disks.iter().map(|disk| disk.layer).collect();
    assert_eq!(layers, [Layer::Volume, Layer::Volume, Layer::Disk]);
    let flooded = disk(&seen, "tank/foo");
    assert!(flooded.in_flight > 0 && flooded.oldest_ns.is_some());
    let pool = &seen.pools[0];
    assert_eq!((pool.name.as_str(), pool.throttle), ("tank", "openzfs"));
    assert_eq!(pool.level.filled, pool.dirty);
    assert!(
        pool.level
            .delays_above
            .is_some_and(|above| pool.dirty > above)
    );
    assert!(pool.level.delay > Duration::ZERO);
    // A pool counts a write when the client asks for the write. A volume counts a write when the
    // write is done.
    let (asked, _) = pool.written.expect("an interval");
    let volumes = seen.disks[..2].iter().filter_map(|disk| disk.done.as_ref());
    let done: f64 = volumes.map(|done| done.writes).sum();
    let began = in_flight_at_volumes(&seen) - in_flight_at_volumes(&before);
    assert!(
        (asked - done - began).abs() < 1e-6,
        "{asked}, {done}, {began}"
    );
    assert_eq!(pool.txgs[0].state, TxgState::Open);
    assert!(pool.txgs.is_sorted_by_key(|txg| std::cmp::Reverse(txg.txg)));
    let left: u64 = pool.txgs.iter().map(|txg| txg.left).sum();
    assert_eq!(left, pool.dirty);
}

#[test]
fn every_throttle_has_its_name_and_its_marks() {
    for (lab, throttle, delays) in [
        ("scenario3-none.toml", "none", false),
        ("scenario3-openzfs.toml", "openzfs", true),
        ("scenario3-legacy.toml", "legacy", true),
    ] {
        let mut sim = of_repository(lab);
        let seen = frame(&mut sim, 10_000);
        let pool = &seen.pools[0];
        assert_eq!(pool.throttle, throttle);
        assert_eq!(pool.level.delays_above.is_some(), delays, "{lab}");
        assert!(pool.dirty > 0 && pool.level.stops_at > 0, "{lab}");
    }
}
