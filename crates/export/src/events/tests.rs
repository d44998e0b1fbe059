//! A ring with a reader that is slow, late or asleep.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use dashpot_engine::{ClientId, Device, DiskId, Event, Instant, Op};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{EventReader, EventRecord, Recorder, rings};

const SECOND_NS: u64 = 1_000_000_000;

fn event(disk: u32, client: u8, number: u64, at: Instant) -> Event {
    Event {
        number,
        parent: None,
        device: Device::Disk(DiskId(disk)),
        client: ClientId(client),
        class: None,
        op: Op::Read,
        fua: false,
        offset: number,
        length: 512,
        outcome: Ok(()),
        arrived: at,
        submitted: at,
        admitted: at,
        issued: at,
        started: at,
        store_done: at,
        target: at,
        offered: at,
        ended: at,
        rule: None,
        lane: None,
    }
}

/// Makes one shard with the disks 3 and 7 of the configuration.
fn ring(capacity: usize) -> (Recorder, EventReader) {
    let (mut recorders, reader) = rings(capacity, [vec![3, 7]].into_iter());
    (recorders.remove(0), reader)
}

#[test]
fn a_record_is_of_its_size() {
    assert_eq!(size_of::<super::FinishedZio>(), 80);
    assert!(size_of::<EventRecord>() <= 88);
}

#[test]
fn the_disk_of_the_probe_leaves_no_events() {
    let (mut recorder, mut reader) = ring(8);
    recorder.join(DiskId(2), ClientId(0), "probe");
    recorder.record([event(2, 0, 1, Instant::ZERO)].into_iter());
    assert!(!reader.drain(|record| panic!("{record:?}")));
    assert_eq!(recorder.drops().total(None), 0);
}

#[test]
fn what_a_full_ring_has_no_room_for_is_counted_by_disk_and_second() {
    let (mut recorder, mut reader) = ring(10);
    for number in 0..100 {
        let at = Instant::from_nanos(SECOND_NS / 10 * number);
        recorder.record([event(u32::from(number >= 50), 0, number, at)].into_iter());
    }
    let mut told = Vec::new();
    reader.drain(|record| told.push(record.clone()));
    assert_eq!(told.len(), 10);
    let drops = recorder.drops();
    assert_eq!((drops.total(Some(3)), drops.total(Some(7))), (40, 50));
    assert_eq!(drops.total(None), 90);
    let expected: Vec<(u64, u64)> = (1..10).map(|second| (second, 10)).collect();
    assert_eq!(drops.seconds(None).collect::<Vec<_>>(), expected);
    assert_eq!(drops.seconds(Some(7)).collect::<Vec<_>>(), expected[4..]);
}

#[test]
fn drops_of_long_ago_are_still_in_the_total() {
    let (mut recorder, _reader) = ring(1);
    for second in 0..10_000 {
        let at = Instant::from_nanos(SECOND_NS * second);
        recorder.record([event(0, 0, second, at)].into_iter());
    }
    let drops = recorder.drops();
    assert_eq!(drops.total(Some(3)), 9_999);
    assert_eq!(drops.seconds(None).count(), super::drops::KEPT);
}

#[derive(Clone, Debug)]
enum Happens {
    Pass(Vec<(u32, u8)>),
    Join(u32, u8),
    Read,
}

fn happenings() -> impl Strategy<Value = Vec<Happens>> {
    let who = || (0..2_u32, 0..3_u8);
    let pass = proptest::collection::vec(who(), 1..12).prop_map(Happens::Pass);
    let join = who().prop_map(|(disk, client)| Happens::Join(disk, client));
    let one = prop_oneof![4 => pass, 2 => join, 1 => any::<bool>().prop_map(|_| Happens::Read)];
    proptest::collection::vec(one, 1..60)
}

proptest! {
    /// Every event is either counted as dropped, or read once, in order and with the client that
    /// sent it.
    #[test]
    fn nothing_is_lost_uncounted_or_ascribed_to_another(happenings in happenings()) {
        let (mut recorder, mut reader) = ring(16);
        let mut names: HashMap<(u16, u8), String> = HashMap::new();
        let mut sent: Vec<(u64, u16, Option<String>)> = Vec::new();
        let mut read = Vec::new();
        let mut known: HashMap<(u16, u8), String> = HashMap::new();
        let index = |disk: u32| [3_u16, 7][disk as usize];
        for (at, happens) in happenings.iter().chain([&Happens::Read]).enumerate() {
            match happens {
                Happens::Join(disk, client) => {
                    let name = format!("client {at}");
                    recorder.join(DiskId(*disk), ClientId(*client), &name);
                    names.insert((index(*disk), *client), name);
                }
                Happens::Pass(who) => {
                    let first = sent.len() as u64;
                    sent.extend(who.iter().zip(first..).map(|((disk, client), number)| {
                        let disk = index(*disk);
                        (number, disk, names.get(&(disk, *client)).cloned())
                    }));
                    let events = who.iter().zip(first..);
                    let events = events.map(|((disk, client), number)| {
                        event(*disk, *client, number, Instant::ZERO)
                    });
                    recorder.record(events.collect::<Vec<_>>().into_iter());
                }
                Happens::Read => {
                    reader.drain(|record| match record {
                        EventRecord::Joined { disk, client, name } => {
                            known.insert((*disk, client.0), name.to_string());
                        }
                        EventRecord::Zio(zio) => {
                            let name = known.get(&(zio.disk, zio.client.0)).cloned();
                            read.push((zio.offset, zio.disk, name));
                        }
                    });
                }
            }
        }
        let drops = recorder.drops();
        prop_assert_eq!(read.len() as u64 + drops.total(None), sent.len() as u64);
        let mut rest = sent.iter();
        for told in &read {
            prop_assert!(rest.any(|sent| sent == told), "{:?}", told);
        }
        for disk in [3, 7] {
            let of_disk = |events: &[(u64, u16, Option<String>)]| {
                events.iter().filter(|(_, of, _)| *of == disk).count() as u64
            };
            prop_assert_eq!(of_disk(&read) + drops.total(Some(disk)), of_disk(&sent));
        }
    }
}

/// The test sends each event after the reader has read the one before. If a wake-up were lost, the
/// test would never end.
#[test]
fn a_reader_that_goes_to_sleep_is_woken_for_every_event() {
    const EVENTS: u64 = 20_000;
    let (mut recorder, reader) = ring(8);
    let (read, is_read) = std::sync::mpsc::channel();
    let bell = reader.bell();
    let reading = thread::spawn(move || {
        let reader = Mutex::new(reader);
        for _ in 0..EVENTS {
            bell.sleep_unless(|| !reader.lock().unwrap().is_empty());
            reader.lock().unwrap().drain(|_| ());
            read.send(()).unwrap();
        }
    });
    for number in 0..EVENTS {
        recorder.record([event(0, 0, number, Instant::ZERO)].into_iter());
        is_read.recv().unwrap();
    }
    reading.join().unwrap();
}

/// The reader's nap begins at any time: with an empty ring, one that fills up, or a full one.
#[test]
fn a_ring_that_fills_up_ends_a_nap() {
    for before in 0..20 {
        let (mut recorder, reader) = ring(16);
        let mut pass = || recorder.record([event(0, 0, 0, Instant::ZERO)].into_iter());
        (0..before).for_each(|_| pass());
        let bell = reader.bell();
        let napper = thread::spawn(move || bell.nap(Duration::MAX));
        while !napper.is_finished() {
            pass();
            thread::yield_now();
        }
    }
}
