//! Compares random pairs of runs. A rule makes each I/O take 10 ms, but in one run of each pair a few percent
//! of the I/Os take three times as long.

use std::sync::Arc;

use dashpot_engine::{Duration, Op, Random, Waits};

use super::*;
use crate::dimension::{Dimension, Knows};
use crate::facts::{Fact, Facts};
use crate::finished::{FinishedIo, IoWaits};
use crate::kind::Kind;
use crate::layer::Layer;
use crate::who::Who;

const MS: u64 = 1_000_000;
const IOS: u64 = 6_000;
const LASTED: Duration = Duration::from_secs(60);

/// A run, and which of its I/Os take 30 ms.
struct Run {
    random: Random,
    is_slow: fn(&FinishedIo) -> bool,
    /// How many extra I/Os in a thousand come from the client `c3`.
    more: u64,
}

impl Run {
    /// A random I/O: a read or write of 4K to 128K by one of eight clients to one of ten disks. Now and then
    /// the host stops the daemon, so that a reply is late.
    fn io(&mut self, at: u64) -> FinishedIo {
        let disk = self.random.below(10);
        let client = match self.random.below(1_000) {
            some if some < self.more => 3,
            _ => self.random.below(8),
        };
        let stop = match self.random.below(100) {
            0..10 => self.random.below(36 * MS),
            _ => self.random.below(MS / 10),
        };
        let mut io = FinishedIo {
            layer: Layer::Disk,
            device: format!("d{disk}").into(),
            kind: Kind::Op([Op::Read, Op::Write][self.random.below(2) as usize]),
            fua: false,
            letters: None,
            offset_bytes: self.random.below(1 << 36),
            length_bytes: 4_096 << self.random.below(6),
            depth: Some(1 + self.random.below(8) as u32),
            begun_ns: at * 10 * MS,
            ended_ns: 0,
            at_ns: 0,
            waits: IoWaits::Zio(Waits::default()),
            who: Some(Who::Client(Arc::from(format!("c{client}")))),
            facts: Facts::default(),
            inode: None,
            merged: 0,
            requeued: 0,
            error: None,
        };
        let hold_ns = if (self.is_slow)(&io) {
            30 * MS
        } else {
            10 * MS + self.random.below(MS / 5)
        };
        io.ended_ns = io.begun_ns + hold_ns + stop;
        io.at_ns = io.ended_ns;
        io.waits = IoWaits::Zio(Waits {
            hold: Duration::from_nanos(hold_ns),
            lateness: Duration::from_nanos(stop),
            ..Waits::default()
        });
        io
    }
}

fn never(_: &FinishedIo) -> bool {
    false
}

fn ios(seed: u64, is_slow: fn(&FinishedIo) -> bool, more: u64) -> Vec<FinishedIo> {
    let random = Random::new(seed);
    let mut run = Run {
        random,
        is_slow,
        more,
    };
    (0..IOS).map(|at| run.io(at)).collect()
}

fn compared(here: &[FinishedIo], there: &[FinishedIo]) -> Comparison {
    compared_within(LASTED, here, there)
}

/// Compares two sides; the side `here` lasted for `lasted`.
fn compared_within(lasted: Duration, here: &[FinishedIo], there: &[FinishedIo]) -> Comparison {
    let mut usual = Usual::default();
    there.iter().for_each(|io| usual.add(io));
    let mut diff = Diff::new(Slow::Beyond(usual), Knows::Zios);
    here.iter().for_each(|io| diff.add(Side::Here, io));
    there.iter().for_each(|io| diff.add(Side::There, io));
    diff.compare(lasted, Some(LASTED))
}

/// The value that differs most, in the form `device d3`.
fn first(comparison: &Comparison) -> String {
    match comparison.differs.first() {
        Some(first) => format!("{} {}", first.dimension.word(), first.values[0].value),
        None => format!("{:?}", comparison.finding),
    }
}

fn has_client(io: &FinishedIo, name: &str) -> bool {
    io.who.as_ref().and_then(Who::client) == Some(name)
}

/// Fails unless at least 19 of 20 seeds give one of the expected first lines.
#[track_caller]
fn assert_found(is_slow: fn(&FinishedIo) -> bool, expected: &[&str]) {
    let found = |seed: &u64| {
        let here = ios(*seed, is_slow, 0);
        first(&compared(&here, &ios(seed + 100, never, 0)))
    };
    let wrong: Vec<(u64, String)> = (0..20)
        .map(|seed| (seed, found(&seed)))
        .filter(|(_, found)| !expected.contains(&found.as_str()))
        .collect();
    assert!(wrong.len() <= 1, "{expected:?}: {wrong:?}");
}

#[test]
fn an_effect_on_few_ios_is_the_first_line() {
    assert_found(
        |io| &*io.device == "d3" && io.offset_bytes % 5 == 0,
        &["device d3"],
    );
    assert_found(
        |io| has_client(io, "c5") && io.offset_bytes % 5 == 0,
        &["client c5"],
    );
    assert_found(
        |io| io.length_bytes == 65_536 && io.offset_bytes % 7 == 0,
        &["size 64K-128K"],
    );
    assert_found(
        |io| (20..22).contains(&(io.offset_bytes >> 30)),
        &["offset 20G-21G", "offset 21G-22G"],
    );
}

/// Two in three slow I/Os are large, and all slow I/Os arrive at a disk with 19 other I/Os in flight. The
/// size must come first, although the depth differs more.
#[test]
fn depth_comes_after_what_may_have_caused_it() {
    let is_slow = |io: &FinishedIo| {
        let is_large = io.length_bytes == 65_536 && io.offset_bytes.is_multiple_of(4);
        is_large || io.offset_bytes.is_multiple_of(50)
    };
    let mut here = ios(8, is_slow, 0);
    for io in here.iter_mut().filter(|io| is_slow(io)) {
        io.depth = Some(20);
    }
    let comparison = compared(&here, &ios(9, never, 0));
    let differs = comparison.differs.iter();
    let differs: Vec<(Dimension, f64)> = differs.map(|one| (one.dimension, one.points)).collect();
    let [(Dimension::Size, size), (Dimension::Depth, depth)] = differs[..] else {
        panic!("{differs:?}");
    };
    assert!(depth > size);
}

/// Both sides have equally many I/Os beyond the 99th percentile, but those of the side in question are far
/// beyond it. The comparison must still call that side slow.
#[test]
fn a_few_ios_that_are_much_slower_make_it_slow() {
    let few = |io: &FinishedIo| &*io.device == "d3" && io.offset_bytes.is_multiple_of(17);
    let mut here = ios(6, few, 0);
    for io in here.iter_mut().filter(|io| few(io)) {
        let IoWaits::Zio(waits) = &mut io.waits else {
            continue;
        };
        waits.hold += Duration::from_secs(2);
        io.ended_ns += 2_000 * MS;
    }
    assert!(here.iter().filter(|io| few(io)).count() < IOS as usize / 100);
    let comparison = compared(&here, &ios(7, never, 0));
    assert_eq!(comparison.finding, Finding::Slow);
    assert_eq!(first(&comparison), "device d3");
}

#[test]
fn nothing_differs_between_two_steady_runs() {
    let differs = |seed: &u64| {
        let comparison = compared(&ios(*seed, never, 0), &ios(seed + 100, never, 0));
        !comparison.differs.is_empty() || !comparison.rose.is_empty()
    };
    let wrong: Vec<u64> = (0..20).filter(differs).collect();
    assert!(wrong.len() <= 1, "{wrong:?}");
}

#[test]
fn a_client_that_only_does_more_is_not_blamed_but_told() {
    let all = |io: &FinishedIo| io.offset_bytes.is_multiple_of(20);
    // Both sides have the same number of I/Os, but this side lasted for less time, so its rate is higher.
    // Most of the difference comes from one client.
    let lasted = Duration::from_secs(36);
    let comparison = compared_within(lasted, &ios(1, all, 400), &ios(2, never, 0));
    assert_eq!(comparison.finding, Finding::Slow);
    assert_eq!(comparison.differs, Vec::new());
    let rose = comparison.rose.first().expect("someone did more");
    assert_eq!(
        (rose.dimension, rose.value.as_str()),
        (Dimension::Client, "c3")
    );
}

#[test]
fn slow_ios_beside_the_rest_and_where_their_time_went() {
    let slow = "latency>=25ms".parse().expect("a condition");
    let mut diff = Diff::new(Slow::Where(slow), Knows::Zios);
    let is_slow = |io: &FinishedIo| has_client(io, "c5");
    for io in &ios(3, is_slow, 0) {
        diff.add(Side::Here, io);
    }
    let comparison = diff.compare(LASTED, None);
    assert_eq!(first(&comparison), "client c5");
    assert_eq!(comparison.spent[0].wait, Dimension::Hold);
    assert!(comparison.alike.contains(&Dimension::Device));
    assert!(
        !comparison.alike.contains(&Dimension::Fact(Fact::Class)),
        "no I/O has a class"
    );
}

#[test]
fn a_value_with_few_slow_ios_is_neither_a_difference_nor_a_likeness() {
    let some = |io: &FinishedIo| {
        let is_rare = io.offset_bytes.is_multiple_of(40);
        is_rare && (has_client(io, "c1") || has_client(io, "c2"))
    };
    let comparison = compared_within(LASTED, &ios(4, some, 0), &ios(5, never, 0));
    assert_eq!(comparison.finding, Finding::Slow);
    assert_eq!(comparison.too_few, vec![Dimension::Client]);
    assert!(comparison.alike.contains(&Dimension::Op));
    assert!(!comparison.alike.contains(&Dimension::Client));
}

#[test]
fn the_time_with_the_driver_is_a_wait_of_the_kernels_ios() {
    let mut diff = Diff::new(
        Slow::Where("latency>=1ns".parse().expect("a condition")),
        Knows::Kernel,
    );
    for mut io in ios(3, never, 0) {
        io.waits = IoWaits::Kernel {
            queue_ns: Some(MS),
            device_ns: 3 * MS,
        };
        diff.add(Side::Here, &io);
    }
    let spent = diff.compare(LASTED, None).spent;
    let spent: Vec<_> = spent.iter().map(|one| (one.wait, one.percent)).collect();
    assert_eq!(
        spent,
        [(Dimension::Latency, 75.0), (Dimension::Queue, 25.0)]
    );
}

#[test]
fn the_sums_are_those_of_the_ios() {
    let here = ios(4, |io| &*io.device == "d3", 0);
    let comparison = compared(&here, &ios(5, never, 0));
    assert_eq!(comparison.here.count, IOS);
    let of_d3 = here.iter().filter(|io| &*io.device == "d3").count() as u64;
    let value = &comparison.differs[0].values[0];
    // Every I/O on `d3` is slow. On the other disks, one I/O in a hundred is slow, as on the other side.
    assert_eq!((value.value.as_str(), value.slow_count), ("d3", of_d3));
    assert!((value.ios_percent - 100.0 * of_d3 as f64 / IOS as f64).abs() < 1e-9);
}

/// While `d7` has 30 I/Os in flight, I/Os of the other devices take longer. The comparison must name `d7`.
#[test]
fn what_was_in_flight_elsewhere_is_told() {
    let burst = |second: u64| second % 10 == 3;
    let run = |has_bursts: bool| {
        let mut all = ios(11, never, 0);
        for io in &mut all {
            let second = io.begun_ns / 1_000_000_000;
            let is_slow = has_bursts && burst(second) && &*io.device != "d7";
            if let IoWaits::Zio(waits) = &mut io.waits
                && is_slow
            {
                waits.queue = Duration::from_nanos(40 * MS);
                io.ended_ns += 40 * MS;
            }
        }
        let seconds = (0..60).filter(|second| has_bursts && burst(*second));
        let noise: Vec<FinishedIo> = seconds
            .flat_map(|second| (0..60).map(move |at| second * 1_000_000_000 + at * 16 * MS))
            .map(|begun_ns| FinishedIo {
                device: "d7".into(),
                kind: Kind::Op(Op::Write),
                who: Some(Who::Client(Arc::from("noisy"))),
                begun_ns,
                ended_ns: begun_ns + 500 * MS,
                waits: IoWaits::Zio(Waits {
                    recv: Duration::from_nanos(500 * MS),
                    ..Waits::default()
                }),
                ..all[0].clone()
            })
            .collect();
        all.extend(noise);
        all
    };
    let (here, there) = (run(true), run(false));
    let mut usual = Usual::default();
    there.iter().for_each(|io| usual.add(io));
    let mut diff = Diff::new(Slow::Beyond(usual), Knows::Zios);
    here.iter().for_each(|io| diff.add(Side::Here, io));
    there.iter().for_each(|io| diff.add(Side::There, io));
    here.iter().for_each(|io| diff.look_beside(Side::Here, io));
    there
        .iter()
        .for_each(|io| diff.look_beside(Side::There, io));
    let beside = diff.compare(LASTED, Some(LASTED)).beside;
    let told: Vec<(Dimension, &str)> = beside
        .iter()
        .map(|one| (one.dimension, &*one.value))
        .collect();
    for expected in [
        (Dimension::Device, "d7"),
        (Dimension::Client, "noisy"),
        (Dimension::Op, "write"),
    ] {
        assert!(told.contains(&expected), "{beside:?}");
    }
    let d7 = beside
        .iter()
        .find(|one| one.value == "d7")
        .expect("the device");
    // Compute, naively, the mean number of I/Os in flight on `d7` when a slow I/O of another device was
    // issued.
    let slow: Vec<&FinishedIo> = here
        .iter()
        .filter(|io| matches!(&io.waits, IoWaits::Zio(waits) if waits.queue > Duration::ZERO))
        .collect();
    let in_flight = |at_ns: u64| {
        let own = here.iter().filter(|io| &*io.device == "d7");
        own.filter(|io| io.begun_ns <= at_ns && at_ns < io.ended_ns)
            .count()
    };
    let mean =
        slow.iter().map(|io| in_flight(io.begun_ns)).sum::<usize>() as f64 / slow.len() as f64;
    assert!(
        (d7.slow_mean - mean).abs() < 0.15 * mean,
        "{} {mean}",
        d7.slow_mean
    );
}

#[test]
fn errors_hung_ios_and_a_fall_are_told() {
    let there = ios(12, never, 0);
    let mut here = ios(13, never, 0);
    here.truncate(2_000);
    for io in here.iter_mut().filter(|io| &*io.device == "d2").take(9) {
        io.error = Some("EIO".to_owned());
    }
    let mut usual = Usual::default();
    there.iter().for_each(|io| usual.add(io));
    let mut diff = Diff::new(Slow::Beyond(usual), Knows::Zios);
    here.iter().for_each(|io| diff.add(Side::Here, io));
    there.iter().for_each(|io| diff.add(Side::There, io));
    for seconds in [1, 11, 21] {
        let hung = FinishedIo {
            begun_ns: 5,
            ended_ns: 5 + seconds * 1_000_000_000,
            ..there[0].clone()
        };
        diff.add_in_flight(&hung);
    }
    let found = diff.compare(LASTED, Some(LASTED));
    let hung: Vec<_> = found
        .hung
        .iter()
        .map(|one| (one.count, one.oldest_ns))
        .collect();
    assert_eq!(hung, [(1, 21_000_000_000)]);
    let failed: Vec<&str> = found.failed.iter().map(|one| one.value.as_str()).collect();
    assert!(
        failed.contains(&"EIO") && failed.contains(&"d2"),
        "{failed:?}"
    );
    assert_eq!(
        found.fewer().map(|(here, there)| (here.round(), there)),
        Some((33.0, 100.0))
    );
    assert!(compared(&there, &there).fewer().is_none());
}
