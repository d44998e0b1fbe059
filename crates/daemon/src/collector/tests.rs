//! Compares the collected figures with a naive model that keeps every zio.

use std::collections::{BTreeMap, BTreeSet};

use dashpot_engine::histogram::{Histogram, Sparse};
use dashpot_engine::{ClientId, Device, DiskId, Duration, Errno, Event, Instant, Op};
use dashpot_export::{DeviceId, EventRecord, FinishedZio};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::collected::{Collected, Part};
use super::seconds::SECONDS;
use super::tally::{Brief, Tally};

const DEVICES: u16 = 2;
const SECOND_NS: u64 = 1_000_000_000;
/// The memory that one remembered zio takes.
const KEPT_BYTES: u64 = 104;

fn event(ended: Instant) -> Event {
    Event {
        number: 0,
        parent: None,
        device: Device::Disk(DiskId(0)),
        client: ClientId(0),
        class: None,
        txg_syncing: None,
        op: Op::Read,
        fua: false,
        call: None,
        offset: 0,
        length: 4_096,
        depth: 1,
        outcome: Ok(()),
        arrived: ended,
        submitted: ended,
        admitted: ended,
        issued: ended,
        started: ended,
        store_done: ended,
        target: ended,
        offered: ended,
        ended,
        rule: None,
        lane: None,
    }
}

#[derive(Clone, Debug)]
enum Happens {
    Join(DeviceId, u8, String),
    Zio(FinishedZio),
    Settle,
}

/// Zios of few clients and sizes, in seconds that need not be in order.
fn zios() -> impl Strategy<Value = Happens> {
    let spans = vec(0..3_u64, 5);
    let op = select(Op::ALL.to_vec());
    let length = select(vec![0, 1, 512, 4_096, 6_000, u32::MAX]);
    let who = ((0..DEVICES).prop_map(DeviceId), select(vec![0, 1, 2, 64]));
    (who, op, length, spans, 100..104_u64, any::<bool>()).prop_map(
        |((device, client), op, length, spans, second, failed)| {
            let mut at = Instant::from_nanos(second * SECOND_NS);
            let mut later = |which: usize| {
                at = at + Duration::from_micros(spans[which]);
                at
            };
            let mut event = event(Instant::ZERO);
            event.arrived = later(0);
            (event.submitted, event.admitted) = (event.arrived, event.arrived);
            event.issued = later(0);
            event.started = event.issued;
            event.store_done = later(1);
            event.target = later(2);
            event.offered = later(3);
            event.ended = later(4);
            event.op = op;
            event.length = length;
            event.client = ClientId(client);
            event.outcome = if failed { Err(Errno::Io) } else { Ok(()) };
            Happens::Zio(FinishedZio::of(&event, device))
        },
    )
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let name = select(vec!["a", "b", "c", "d"]);
    let join = ((0..DEVICES).prop_map(DeviceId), 0..3_u8, name)
        .prop_map(|(device, client, name)| Happens::Join(device, client, name.to_owned()));
    vec(
        prop_oneof![8 => zios(), 1 => join, 1 => Just(Happens::Settle)],
        0..80,
    )
}

/// Passes the happenings to `collected`. Returns every zio, with the name that its client had.
fn play(happenings: &[Happens], collected: &mut Collected) -> Vec<(FinishedZio, String)> {
    let mut names: BTreeMap<(DeviceId, u8), String> = BTreeMap::new();
    let mut all = Vec::new();
    for happens in happenings {
        match happens.clone() {
            Happens::Join(device, id, name) => {
                names.insert((device, id), name.clone());
                let (client, name) = (ClientId(id), name.into());
                collected.take(&EventRecord::Joined {
                    device,
                    client,
                    name,
                });
            }
            Happens::Zio(zio) => {
                let name = names.get(&(zio.device, zio.client.0));
                all.push((zio, name.cloned().unwrap_or("other".to_owned())));
                collected.take(&EventRecord::Zio(zio));
            }
            Happens::Settle => collected.settle(),
        }
    }
    collected.settle();
    all
}

fn histogram<'a>(
    zios: impl Iterator<Item = &'a FinishedZio>,
    of: impl Fn(&FinishedZio) -> Option<Duration>,
) -> Sparse {
    let mut histogram = Histogram::default();
    zios.filter_map(of)
        .for_each(|span| histogram.record(span.as_nanos()));
    histogram.to_sparse()
}

fn tally(zios: &[&FinishedZio]) -> Tally {
    let failed = zios.iter().filter(|zio| zio.outcome.is_err());
    let done = zios.iter().filter(|zio| zio.outcome.is_ok());
    let of = |of: fn(&FinishedZio) -> Option<Duration>| histogram(zios.iter().copied(), of);
    Tally {
        brief: Brief {
            completed: zios.len() as u64,
            bytes: done.map(|zio| u64::from(zio.length)).sum(),
            disk: of(|zio| Some(zio.at_device())),
        },
        failed: failed.count() as u64,
        total: of(|zio| Some(zio.waits().total())),
        store: of(|zio| Some(zio.waits().store)),
        lateness: of(|zio| {
            let waits = zio.waits();
            (waits.hold > Duration::ZERO).then_some(waits.lateness)
        }),
    }
}

fn size_of_class(length: u32) -> Option<u8> {
    (0..32_u8).rev().find(|power| length >> power != 0)
}

type Told = BTreeMap<(String, Op), Tally>;

/// The expected counts, by the label that `name` gives to each zio.
fn expected(
    all: &[(FinishedZio, String)],
    device: DeviceId,
    name: impl Fn(&(FinishedZio, String)) -> String,
) -> Told {
    let of_device = || all.iter().filter(|(zio, _)| zio.device == device);
    let keys: BTreeSet<(String, Op)> = of_device().map(|zio| (name(zio), zio.0.op)).collect();
    let of_key = |key: &(String, Op)| {
        let of_key = of_device().filter(|zio| (name(zio), zio.0.op) == *key);
        tally(&of_key.map(|(zio, _)| zio).collect::<Vec<_>>())
    };
    keys.into_iter()
        .map(|key| (key.clone(), of_key(&key)))
        .collect()
}

fn told(collected: &Collected, device: DeviceId, name: impl Fn(Part) -> Option<String>) -> Told {
    let parts = collected.parts(device);
    let named = parts.filter_map(|(part, op, tally)| Some(((name(part)?, op), tally.clone())));
    named.collect()
}

proptest! {
    #[test]
    fn parts_of_a_device_are_what_they_did(happenings in happenings()) {
        let mut collected = Collected::new(DEVICES.into(), 0).unwrap();
        let all = play(&happenings, &mut collected);
        for device in (0..DEVICES).map(DeviceId) {
            let client = |part| match part {
                Part::Client(place) => Some(collected.client(device, place).to_string()),
                Part::Size(_) => None,
            };
            let by_client = expected(&all, device, |(_, name)| name.clone());
            prop_assert_eq!(told(&collected, device, client), by_client);
            let size = |part| match part {
                Part::Client(_) => None,
                Part::Size(power) => Some(format!("{power:?}")),
            };
            let by_size = expected(&all, device, |(zio, _)| format!("{:?}", size_of_class(zio.length)));
            prop_assert_eq!(told(&collected, device, size), by_size);
        }
    }

    #[test]
    fn seconds_are_what_was_done_in_them(happenings in happenings()) {
        let mut collected = Collected::new(DEVICES.into(), 0).unwrap();
        let all = play(&happenings, &mut collected);
        let mut expected: BTreeMap<_, Vec<&FinishedZio>> = BTreeMap::new();
        for (zio, name) in &all {
            let second = zio.ended().as_nanos() / SECOND_NS;
            let key = (second, zio.device, name.clone(), zio.op);
            expected.entry(key).or_default().push(zio);
        }
        let mut told = BTreeMap::new();
        for (second, cells) in collected.seconds().iter() {
            for cell in cells.iter() {
                let key = (second, cell.device, cell.client.to_string(), cell.op);
                prop_assert!(told.insert(key, cell.tally.clone()).is_none());
            }
        }
        let brief = |zios: &[&FinishedZio]| tally(zios).brief;
        let expected: BTreeMap<_, Brief> =
            expected.into_iter().map(|(key, zios)| (key, brief(&zios))).collect();
        prop_assert_eq!(told, expected);
        let numbers: Vec<u64> = collected.seconds().iter().map(|(number, _)| number).collect();
        prop_assert!(numbers.is_sorted());
    }

    #[test]
    fn who_reads_in_time_misses_nothing_and_who_does_not_is_told(
        happenings in happenings(),
        room in 0..20_u64,
        cursor in 0..100_u64,
    ) {
        let mut collected = Collected::new(DEVICES.into(), room * KEPT_BYTES).unwrap();
        let all = play(&happenings, &mut collected);
        let come = all.len() as u64;
        prop_assert_eq!(collected.recent().now(), come);
        let oldest = come.saturating_sub(room);
        prop_assert_eq!(collected.recent().forgotten(cursor), oldest.saturating_sub(cursor));
        let told: Vec<_> = collected.recent().after(cursor)
            .map(|(at, zio, name)| (at, *zio, name.to_owned()))
            .collect();
        let expected: Vec<_> = (0..).zip(all)
            .map(|(at, (zio, name))| (at, zio, name))
            .filter(|(at, ..)| *at >= cursor.max(oldest))
            .collect();
        prop_assert_eq!(told, expected);
    }
}

proptest! {
    #[test]
    fn a_copy_has_the_remembered_zios_of_its_seconds(
        happenings in happenings(),
        room in 0..30_u64,
        part in 1..20_usize,
        from in 99..104_u64,
        length in 0..5_u64,
    ) {
        let mut collected = Collected::new(DEVICES.into(), room * KEPT_BYTES).unwrap();
        let all = play(&happenings, &mut collected);
        let seconds = from..from + length;
        let second = |zio: &FinishedZio| zio.ended().as_nanos() / SECOND_NS;
        let is_read = |zio: &FinishedZio| zio.op == Op::Read;
        let mut copied = collected.recent().begin_copy(&seconds);
        while !collected.recent().copy(&mut copied, &seconds, part, is_read) {}
        let told: Vec<(FinishedZio, String)> = copied.zios.iter().map(|kept| {
            let name = copied.name_of(kept.client).map_or("other", |name| name);
            (kept.zio, name.to_owned())
        }).collect();
        let (forgotten, kept) = all.split_at(all.len().saturating_sub(room as usize));
        let expected: Vec<_> = kept.iter()
            .filter(|(zio, _)| seconds.contains(&second(zio)) && is_read(zio))
            .cloned()
            .collect();
        prop_assert_eq!(told, expected);
        let since = forgotten.iter().map(|(zio, _)| second(zio) + 1).max();
        prop_assert_eq!(collected.recent().since(), since.unwrap_or(0));
    }
}

fn join(collected: &mut Collected, client: u8, name: &str) {
    let (client, name) = (ClientId(client), name.into());
    collected.take(&EventRecord::Joined {
        device: DeviceId(0),
        client,
        name,
    });
}

/// A zio in this second.
fn zio(second: u64, client: u8) -> EventRecord {
    let mut event = event(Instant::from_nanos(second * SECOND_NS));
    event.client = ClientId(client);
    EventRecord::Zio(FinishedZio::of(&event, DeviceId(0)))
}

#[test]
fn the_client_that_was_quiet_for_longest_gives_way_and_its_counts_do_not() {
    let mut collected = Collected::new(1, 0).unwrap();
    for client in 0..64 {
        join(&mut collected, client, &client.to_string());
        collected.take(&zio(u64::from(client) + 1, client));
    }
    collected.take(&zio(100, 0));
    // A new client gets the id 5. The client with the id 1 was idle for longest, but is still connected.
    join(&mut collected, 5, "new");
    collected.take(&zio(101, 5));
    collected.take(&zio(101, 1));
    collected.settle();
    let counts: BTreeMap<String, u64> = collected
        .parts(DeviceId(0))
        .filter_map(|(part, _, tally)| match part {
            Part::Client(place) => Some((
                collected.client(DeviceId(0), place).to_string(),
                tally.brief.completed,
            )),
            Part::Size(_) => None,
        })
        .collect();
    assert_eq!(counts.len(), 65);
    let count = |name: &str| counts.get(name).copied();
    assert_eq!(
        (count("0"), count("1"), count("5")),
        (Some(2), None, Some(1))
    );
    assert_eq!((count("new"), count("other")), (Some(1), Some(2)));
}

#[test]
fn names_that_nobody_has_any_more_are_forgotten() {
    let mut collected = Collected::new(1, 10 * KEPT_BYTES).unwrap();
    join(&mut collected, 1, "stays");
    for client in 0..10_000 {
        join(&mut collected, 0, &client.to_string());
        collected.take(&zio(0, 0));
    }
    assert!(
        collected.recent().names() <= 1_024,
        "{}",
        collected.recent().names()
    );
    collected.take(&zio(0, 1));
    let names: Vec<&str> = collected
        .recent()
        .after(0)
        .map(|(_, _, name)| name)
        .collect();
    assert_eq!((names[0], names[9]), ("9991", "stays"));
}

#[test]
fn an_hour_is_remembered_and_no_more() {
    let mut collected = Collected::new(1, 0).unwrap();
    for second in 0..10_000 {
        collected.take(&zio(second, 0));
    }
    // The collector has already forgotten the second of this zio.
    collected.take(&zio(3, 0));
    collected.settle();
    let numbers: Vec<u64> = collected
        .seconds()
        .iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(
        numbers,
        (10_000 - SECONDS as u64..10_000).collect::<Vec<_>>()
    );
}

#[test]
fn more_kinds_in_a_second_than_are_counted_at_once_are_all_counted() {
    let mut collected = Collected::new(1, 0).unwrap();
    for client in 0..64 {
        join(&mut collected, client, &client.to_string());
    }
    let kinds = || {
        let clients = (0..64).flat_map(|client| Op::ALL.map(|op| (client, op)));
        clients.flat_map(|(client, op)| (0..10).map(move |power| (client, op, 1 << power)))
    };
    for (client, op, length) in kinds().chain(kinds()) {
        let mut event = event(Instant::from_nanos(SECOND_NS));
        (event.client, event.op, event.length) = (ClientId(client), op, length);
        collected.take(&EventRecord::Zio(FinishedZio::of(&event, DeviceId(0))));
    }
    collected.settle();
    for (part, op, tally) in collected.parts(DeviceId(0)) {
        let expected = match part {
            Part::Client(_) => 2 * 10,
            Part::Size(_) => 2 * 64,
        };
        assert_eq!(tally.brief.completed, expected, "{part:?} {op:?}");
    }
    assert_eq!(
        collected.parts(DeviceId(0)).count(),
        (64 + 10) * Op::ALL.len()
    );
    assert_eq!(collected.seconds().iter().count(), 1);
}
