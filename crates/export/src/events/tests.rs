//! Tests a ring whose reader is slow, late or asleep.

use std::collections::HashMap;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use dashpot_engine::{ClientId, Device, DiskId, Event, Instant, Op};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

use super::{DeviceId, DeviceIds, EventReader, EventRecord, Recorder, rings};

const SECOND_NS: u64 = 1_000_000_000;

fn event(disk: u32, client: u8, number: u64, at: Instant) -> Event {
    Event {
        number,
        parent: None,
        device: Device::Disk(DiskId(disk)),
        client: ClientId(client),
        class: None,
        txg_syncing: None,
        op: Op::Read,
        fua: false,
        call: None,
        offset: number,
        length: 512,
        depth: 1,
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

/// The ids of the shard's two disks.
const DEVICES: [DeviceId; 2] = [DeviceId(3), DeviceId(7)];

/// Makes the ring of one shard.
fn ring(capacity: usize) -> (Recorder, EventReader) {
    let mut devices = DeviceIds::default();
    DEVICES
        .into_iter()
        .for_each(|id| devices.push_disk(id, false));
    let (mut recorders, reader) = rings(capacity, [devices].into_iter());
    (recorders.remove(0), reader)
}

#[test]
fn a_record_is_of_its_size() {
    assert_eq!(size_of::<super::FinishedZio>(), 96);
    assert!(size_of::<EventRecord>() <= 104);
}

#[test]
fn the_disk_of_the_probe_leaves_no_events() {
    let (mut recorder, mut reader) = ring(8);
    recorder.join(Device::Disk(DiskId(2)), ClientId(0), "probe");
    recorder.record([event(2, 0, 1, Instant::ZERO)].into_iter());
    assert!(!reader.drain(|record| panic!("{record:?}")));
    assert_eq!(recorder.drops().total(None), 0);
}

#[test]
fn what_a_full_ring_has_no_room_for_is_counted_by_device_and_second() {
    let (mut recorder, mut reader) = ring(10);
    for number in 0..100 {
        let at = Instant::from_nanos(SECOND_NS / 10 * number);
        recorder.record([event(u32::from(number >= 50), 0, number, at)].into_iter());
    }
    let mut told = Vec::new();
    reader.drain(|record| told.push(record.clone()));
    assert_eq!(told.len(), 10);
    let drops = recorder.drops();
    assert_eq!(
        (drops.total(Some(DEVICES[0])), drops.total(Some(DEVICES[1]))),
        (40, 50)
    );
    assert_eq!(drops.total(None), 90);
    let expected: Vec<(u64, u64)> = (1..10).map(|second| (second, 10)).collect();
    assert_eq!(drops.seconds(None).collect::<Vec<_>>(), expected);
    assert_eq!(
        drops.seconds(Some(DEVICES[1])).collect::<Vec<_>>(),
        expected[4..]
    );
}

#[test]
fn drops_of_long_ago_are_still_in_the_total() {
    let (mut recorder, _reader) = ring(1);
    for second in 0..10_000 {
        let at = Instant::from_nanos(SECOND_NS * second);
        recorder.record([event(0, 0, second, at)].into_iter());
    }
    let drops = recorder.drops();
    assert_eq!(drops.total(Some(DEVICES[0])), 9_999);
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
    /// Every event is either counted as dropped or read exactly once. Events are read in order, and each is
    /// attributed to the client that sent its zio.
    #[test]
    fn nothing_is_lost_uncounted_or_ascribed_to_another(happenings in happenings()) {
        let (mut recorder, mut reader) = ring(16);
        let mut names: HashMap<(DeviceId, u8), String> = HashMap::new();
        let mut sent: Vec<(u64, DeviceId, Option<String>)> = Vec::new();
        let mut read = Vec::new();
        let mut known: HashMap<(DeviceId, u8), String> = HashMap::new();
        let id = |disk: u32| DEVICES[disk as usize];
        for (at, happens) in happenings.iter().chain([&Happens::Read]).enumerate() {
            match happens {
                Happens::Join(disk, client) => {
                    let name = format!("client {at}");
                    recorder.join(Device::Disk(DiskId(*disk)), ClientId(*client), &name);
                    names.insert((id(*disk), *client), name);
                }
                Happens::Pass(who) => {
                    let first = sent.len() as u64;
                    sent.extend(who.iter().zip(first..).map(|((disk, client), number)| {
                        let device = id(*disk);
                        (number, device, names.get(&(device, *client)).cloned())
                    }));
                    let events = who.iter().zip(first..);
                    let events = events.map(|((disk, client), number)| {
                        event(*disk, *client, number, Instant::ZERO)
                    });
                    recorder.record(events.collect::<Vec<_>>().into_iter());
                }
                Happens::Read => {
                    reader.drain(|record| match record {
                        EventRecord::Joined { device, client, name } => {
                            known.insert((*device, client.0), name.to_string());
                        }
                        EventRecord::Zio(zio) => {
                            let name = known.get(&(zio.device, zio.client.0)).cloned();
                            read.push((zio.offset, zio.device, name));
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
        for device in DEVICES {
            let of_device = |events: &[(u64, DeviceId, Option<String>)]| {
                events.iter().filter(|(_, of, _)| *of == device).count() as u64
            };
            prop_assert_eq!(of_device(&read) + drops.total(Some(device)), of_device(&sent));
        }
    }
}

/// The test sends each event only after the reader has read the previous one. If a wake-up were lost, the
/// test would hang.
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

/// A nap ends when the ring fills up, even if the ring is already partly or completely full when the nap
/// begins.
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
