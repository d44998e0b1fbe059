//! Compares a tally with a plain list of I/Os.

use std::collections::BTreeMap;

use dashpot_engine::histogram::Histogram;
use dashpot_engine::{Duration, Op, Waits};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::subsequence;

use super::*;
use crate::facts::Facts;
use crate::finished::IoWaits;
use crate::groups::Order;
use crate::interval::OTHER;
use crate::layer::Layer;
use crate::question::Needs;
use crate::who::{Thread, Who};

fn zio(device: &str, op: Op) -> FinishedIo {
    let ns = Duration::from_nanos;
    FinishedIo {
        layer: Layer::Disk,
        device: device.into(),
        kind: Kind::Op(op),
        fua: false,
        letters: None,
        offset_bytes: 0,
        length_bytes: 4_096,
        depth: Some(1),
        begun_ns: 1_000,
        ended_ns: 10_000,
        at_ns: 10_000,
        waits: IoWaits::Zio(Waits {
            recv: ns(3_000),
            store: ns(1_000),
            hold: ns(5_000),
            ..Waits::default()
        }),
        who: Some(Who::Client("one".into())),
        facts: Facts::default(),
        inode: None,
        merged: 0,
        requeued: 0,
        error: None,
    }
}

fn kernel_io(letters: &str, comm: Option<&str>) -> FinishedIo {
    FinishedIo {
        kind: Kind::of_letters(letters.as_bytes()),
        letters: Some(letters.into()),
        depth: None,
        waits: IoWaits::Kernel {
            queue_ns: Some(3_000),
            device_ns: 6_000,
        },
        who: comm.map(|comm| {
            Who::Thread(Thread {
                process: Some(comm.into()),
                ..Thread::default()
            })
        }),
        ..zio("vda", Op::Read)
    }
}

fn total(op: &OpInterval) -> u128 {
    let total = op.counts.latencies(Layer::Disk, true);
    total.map_or(0, Histogram::sum)
}

fn values(tally: &Tally, device: &str) -> Vec<String> {
    let mut values: Vec<String> = tally
        .ops(device)
        .into_iter()
        .filter_map(|op| op.by)
        .collect();
    values.sort();
    values
}

#[test]
fn devices_and_types_are_apart_and_add_up() {
    let mut tally = Tally::default();
    for (device, op) in [
        ("a", Op::Read),
        ("a", Op::Write),
        ("a", Op::Read),
        ("b", Op::Read),
    ] {
        tally.add(&zio(device, op));
    }
    let ops = tally.ops("a").into_iter();
    let seen = ops.map(|op| {
        (
            op.kind,
            op.counts.completed,
            op.counts.bytes,
            op.time_ns,
            total(&op),
        )
    });
    let expected = [
        (Kind::Op(Op::Read), 2, 8_192, 12_000, 18_000),
        (Kind::Op(Op::Write), 1, 4_096, 6_000, 9_000),
    ];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    assert_eq!(
        tally.ops("b")[0]
            .counts
            .store
            .as_ref()
            .map(|store| store.count()),
        Some(1)
    );
    assert_eq!(tally.devices(), ["a".into(), "b".into()]);
    tally.clear();
    assert!(tally.ops("a").is_empty());
}

#[test]
fn the_kernels_letters_are_apart() {
    let mut tally = Tally::default();
    for letters in ["R", "WS", "R"] {
        tally.add(&kernel_io(letters, Some("dd")));
    }
    let ops = tally.ops("vda");
    let seen: Vec<_> = ops
        .iter()
        .map(|op| (op.rwbs.as_deref(), op.counts.completed))
        .collect();
    assert_eq!(seen, [(Some("R"), 2), (Some("WS"), 1)]);
    assert_eq!((ops[0].time_ns, total(&ops[0])), (12_000, 18_000));
}

#[test]
fn a_process_is_named_or_unknown() {
    let mut tally = Tally::new(Predicates::default(), Some(Dimension::Process));
    tally.add(&kernel_io("W", Some("kworker/u8:3")));
    tally.add(&kernel_io("W", None));
    tally.add(&kernel_io("FF", None));
    assert_eq!(values(&tally, "vda"), ["flush", "unknown", "write-back"]);
}

#[test]
fn offsets_that_reach_far_are_in_longer_ranges() {
    let mut tally = Tally::new(Predicates::default(), Some(Dimension::Offset));
    let at = |offset| FinishedIo {
        offset_bytes: offset,
        ..zio("a", Op::Read)
    };
    [0, 1 << 20, 63 << 20]
        .map(at)
        .iter()
        .for_each(|io| tally.add(io));
    assert_eq!(values(&tally, "a"), ["0-1M", "1M-2M", "63M-64M"]);
    tally.add(&at(127 << 20));
    assert_eq!(values(&tally, "a"), ["0-2M", "126M-128M", "62M-64M"]);
    assert_eq!(
        tally
            .ops("a")
            .iter()
            .map(|op| op.counts.completed)
            .sum::<u64>(),
        4
    );
}

#[test]
fn values_beyond_the_most_are_other_and_counted() {
    let mut tally = Tally::new(Predicates::default(), Some(Dimension::Client));
    let more = KEYS_MAX + 100;
    for at in 0..more {
        tally.add(&FinishedIo {
            who: Some(Who::Client(format!("p{at}").into())),
            ..zio("a", Op::Read)
        });
    }
    let ops = tally.ops("a");
    assert!(ops.len() <= KEYS_MAX + 1);
    let all: u64 = ops.iter().map(|op| op.counts.completed).sum();
    assert_eq!(all, more as u64);
    let other = ops.iter().find(|op| op.by.as_deref() == Some(OTHER));
    assert_eq!(other.map(|op| op.counts.completed), Some(100));
}

fn some_io() -> impl Strategy<Value = FinishedIo> {
    let client = prop_oneof![Just("one"), Just("two")];
    let op = prop_oneof![Just(Op::Read), Just(Op::Write), Just(Op::Flush)];
    let device = prop_oneof![Just("a"), Just("b")];
    let hold = 0..50_000_000_u64;
    let error = prop_oneof![Just(None), Just(Some("EIO".to_owned()))];
    (
        client,
        op,
        device,
        0..1_u64 << 40,
        0..20_u64,
        hold,
        1..9_u32,
        error,
    )
        .prop_map(
            |(client, op, device, offset, power, hold, depth, error)| FinishedIo {
                who: Some(Who::Client(client.into())),
                offset_bytes: offset,
                length_bytes: 1 << power,
                depth: Some(depth),
                ended_ns: 1_000 + 4_000 + hold,
                waits: IoWaits::Zio(Waits {
                    recv: Duration::from_nanos(3_000),
                    store: Duration::from_nanos(1_000),
                    hold: Duration::from_nanos(hold),
                    ..Waits::default()
                }),
                error,
                ..zio(device, op)
            },
        )
}

/// A condition, and the plain Rust that means the same.
type Plain = (&'static str, fn(&FinishedIo) -> bool);
const CONDITIONS: [Plain; 8] = [
    ("op=write", |io| io.kind == Kind::Op(Op::Write)),
    ("op!=f*", |io| io.kind != Kind::Op(Op::Flush)),
    ("latency>=10ms", |io| io.at_device_ns() >= 10_000_000),
    ("size=4K..64K", |io| {
        (4_096..65_536).contains(&io.length_bytes)
    }),
    ("depth!=3", |io| io.depth != Some(3)),
    ("offset<1G", |io| io.offset_bytes < 1 << 30),
    ("error=*", |io| io.error.is_some()),
    (
        "client=t*",
        |io| matches!(&io.who, Some(Who::Client(name)) if &**name == "two"),
    ),
];

type Sum = (u64, u64, Histogram);

/// The sums of counts, of bytes and of measured numbers, by value.
fn by_value(
    counted: impl Iterator<Item = (Option<String>, u64, u64, Option<Box<Histogram>>)>,
) -> BTreeMap<Option<String>, Sum> {
    let mut sums: BTreeMap<Option<String>, Sum> = BTreeMap::new();
    for (value, completed, bytes, measured) in counted {
        let sum = sums.entry(value).or_default();
        sum.0 += completed;
        sum.1 += bytes;
        sum.2.merge(&measured.unwrap_or_default());
    }
    sums
}

proptest! {
    #[test]
    fn a_tally_counts_what_a_list_has(
        ios in vec(some_io(), 0..60),
        picked in subsequence(CONDITIONS.to_vec(), 0..=3),
        by in 0..Dimension::ALL.len(),
        measure in prop_oneof![Just(None), (0..Dimension::ALL.len()).prop_map(Some)],
        counts_only in any::<bool>(),
    ) {
        let words: Vec<&str> = picked.iter().map(|(words, _)| *words).collect();
        let predicates = if words.is_empty() {
Predicates::default()
} else {
words.join(",").parse().expect("conditions")
};
        let (by, measure) = (Dimension::ALL[by], measure.map(|at| Dimension::ALL[at]));
        let question = Question {
            predicates,
            by: Some(by),
            measure,
            counts_only,
            ..Question::latencies(&[Layer::Disk])
        };
        let measure = question.measure;
        let mut tally = Tally::of(&question);
        let mut alike: Vec<(&FinishedIo, Alike)> = Vec::new();
        for io in &ios {
            let at = alike.iter().position(|(other, _)| io.has_names_of(other)).unwrap_or_else(|| {
                alike.push((io, Alike::default()));
                alike.len() - 1
            });
            let is_asked = question.predicates.latencies().contains(&io.at_device_ns());
            let alike = &mut alike[at].1;
            match question.needs() {
                Needs::Names | Needs::Latencies if !is_asked => {}
                Needs::Names => tally.add_counts(io, 1, io.bytes_done()),
                Needs::Latencies => tally.add_latency(io, alike, io.bytes_done(), io.at_device_ns()),
                Needs::All => tally.add_alike(io, alike),
            }
        }

        let ops = tally.devices().into_iter().flat_map(|device| tally.ops(&device));
        let ops = ops.map(|op| (op.by, op.counts.completed, op.counts.bytes, op.counts.measured));
        let ops = by_value(ops);
        let mut one_by_one = Tally::of(&question);
        ios.iter().for_each(|io| one_by_one.add(io));

        let taken: Vec<&FinishedIo> = ios.iter().filter(|io| picked.iter().all(|(_, test)| test(io))).collect();
        for device in ["a", "b"] {
            let own = || taken.iter().filter(|io| &*io.device == device);
            let ops = tally.ops(device);
            let count: u64 = ops.iter().map(|op| op.counts.completed).sum();
            let bytes: u64 = ops.iter().map(|op| op.counts.bytes).sum();
            let time: u128 = ops.iter().map(|op| op.time_ns).sum();
            let total: u128 = ops.iter().map(total).sum();
            let measured: u128 = ops.iter().filter_map(|op| op.counts.measured.as_ref()).map(|one| one.sum()).sum();
            prop_assert_eq!(measured, own().filter_map(|io| measure?.number(io)).map(u128::from).sum::<u128>());
            prop_assert_eq!(count, own().count() as u64);
            prop_assert_eq!(bytes, own().map(|io| io.bytes_done()).sum::<u64>());
            let times = || own().filter(|_| !counts_only);
            prop_assert_eq!(time, times().map(|io| u128::from(io.at_device_ns())).sum::<u128>());
            // The tally ignores the time that an I/O waits before it reaches the device, unless the question
            // asks for that time.
            let total = if question.needs() == Needs::All { total } else { times().map(|io| u128::from(io.total_ns())).sum() };
            prop_assert_eq!(total, times().map(|io| u128::from(io.total_ns())).sum::<u128>());
            if by == Dimension::Client {
                let mut expected: BTreeMap<(Kind, &str), u64> = BTreeMap::new();
                for io in own() {
                    let client = io.who.as_ref().and_then(Who::client).unwrap_or_default();
                    *expected.entry((io.kind, client)).or_default() += 1;
                }
                let seen: BTreeMap<(Kind, &str), u64> = ops
                    .iter()
                    .map(|op| ((op.kind, op.by.as_deref().unwrap_or_default()), op.counts.completed))
                    .collect();
                prop_assert_eq!(seen, expected);
            }
        }
        for tally in [&mut tally, &mut one_by_one] {
            let groups = tally.take_groups().all(Order::ByCount).into_iter();
            let groups = groups.map(|one| (Some(one.value), one.count, one.bytes, one.numbers));
            prop_assert_eq!(&by_value(groups), &ops);
            prop_assert!(tally.devices().is_empty());
        }
    }
}
