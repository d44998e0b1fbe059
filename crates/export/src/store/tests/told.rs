//! Tests a lossy store against a naive model that knows only what clients were told: random writes, flushes
//! and replies, with power cuts in between.

use std::sync::Arc;

use dashpot_engine::{Instant, Random, ZioId};
use dashpot_rules::StoreConfig;

use super::super::lossy::SECTOR;
use super::super::medium::Medium;
use super::super::{Asker, Blocking, Change, ChangeAnswer, Ended, Going, Store};
use super::model::lossy;
use super::{directory_of, disk, open_one};
use crate::power::{Cut, Keep, Loss, Then};
use crate::store::lossy::Batch;

/// The disk ends within a sector.
const SIZE: u64 = 24 * SECTOR + 100;

/// A write that a power cut may have to explain. Each has a value of its own; zeroes have 0.
struct Write {
    zio: ZioId,
    offset: usize,
    length: usize,
    value: u8,
    fua: bool,
    told: Option<u64>,
    /// Whether a power cut has kept it.
    sure: bool,
    at: u64,
}

struct InFlight {
    zio: ZioId,
    /// When it arrived, if it is a flush.
    flush: Option<u64>,
    is_done: bool,
}

/// The store, and what its clients know.
struct World {
    store: Store,
    random: Random,
    now: u64,
    /// The content at the last power cut.
    base: Vec<u8>,
    writes: Vec<Write>,
    covered: u64,
    in_flight: Vec<InFlight>,
    batch: Option<Batch>,
    next: u32,
    value: u8,
}

impl World {
    fn new(store: Store, seed: u64) -> World {
        World {
            store,
            random: Random::new(seed),
            now: 10,
            base: vec![0; SIZE as usize],
            writes: Vec::new(),
            covered: 0,
            in_flight: Vec::new(),
            batch: None,
            next: 0,
            value: 0,
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.random.below(below)
    }

    fn time(&self) -> Instant {
        Instant::from_nanos(self.now)
    }

    /// Does one thing at random. Returns whether it was a power cut.
    fn step(&mut self) -> bool {
        self.now += 1;
        match self.draw(100) {
            0..40 => self.change(),
            40..50 => self.flush(),
            50..65 => self.go_on(),
            65..75 => self.end_batch(),
            75..90 => self.reply(),
            90..93 => self.hang_up(),
            93..96 => self.check_read(),
            _ => {
                self.cut();
                return true;
            }
        }
        false
    }

    fn ask(&mut self, arrived: u64, change: Change<'_>) -> (ZioId, ChangeAnswer) {
        let zio = ZioId(self.next);
        self.next += 1;
        let asker = Asker {
            zio: Some(zio),
            client: "c".into(),
            told_before: arrived,
            at: self.time(),
        };
        let asked = self.store.lossy_mut().unwrap().ask(asker, change);
        (zio, asked)
    }

    fn change(&mut self) {
        if self.value == 250 {
            return;
        }
        let unit = [1, SECTOR, SECTOR, 4 * SECTOR][self.draw(4) as usize];
        let offset = self.draw(SIZE) / unit * unit;
        let length = (1 + self.draw(5 * SECTOR))
            .next_multiple_of(unit)
            .min(SIZE - offset);
        let fua = self.draw(4) == 0;
        let is_zero = self.draw(8) == 0;
        self.value += u8::from(!is_zero);
        let value = if is_zero { 0 } else { self.value };
        let bytes = vec![value; length as usize];
        let change = if is_zero {
            Change::Zero {
                offset,
                length,
                fua,
                last: true,
            }
        } else {
            Change::Write {
                offset,
                bytes: &bytes,
                fua,
            }
        };
        let (zio, asked) = self.ask(self.now, change);
        assert_eq!(asked == ChangeAnswer::Later, fua);
        self.in_flight.push(InFlight {
            zio,
            flush: None,
            is_done: !fua,
        });
        self.writes.push(Write {
            zio,
            offset: offset as usize,
            length: length as usize,
            value,
            fua,
            told: None,
            sure: false,
            at: self.now,
        });
    }

    /// A rule may have held the flush before the store gets it.
    fn flush(&mut self) {
        let arrived = self.now - self.draw(5);
        let (zio, _) = self.ask(arrived, Change::Flush);
        self.in_flight.push(InFlight {
            zio,
            flush: Some(arrived),
            is_done: false,
        });
    }

    fn go_on(&mut self) {
        let mut ended = Vec::new();
        if let Going::Elsewhere(batch) = self.store.lossy_mut().unwrap().go_on(&mut ended) {
            self.batch = Some(batch);
        }
        self.note(&ended);
    }

    fn end_batch(&mut self) {
        if let Some(batch) = self.batch.take() {
            let blocking: Arc<dyn Blocking> = self.store.blocking().unwrap();
            let settled = batch.run(&mut { &*blocking });
            let mut ended = Vec::new();
            self.store
                .lossy_mut()
                .unwrap()
                .settled(&settled, &mut ended);
            self.note(&ended);
        }
    }

    fn note(&mut self, ended: &[Ended]) {
        for one in ended {
            if let Ended::Done(Some(zio), outcome) = one {
                assert_eq!(*outcome, Ok(()));
                let mut in_flight = self.in_flight.iter_mut();
                let Some(one) = in_flight.find(|one| one.zio == *zio) else {
                    continue;
                };
                one.is_done = true;
                if let Some(arrived) = one.flush {
                    self.check_medium(arrived);
                }
            }
        }
    }

    fn reply(&mut self) {
        let done = |one: &&InFlight| one.is_done;
        let count = self.in_flight.iter().filter(done).count() as u64;
        if count == 0 {
            return;
        }
        let nth = self.draw(count) as usize;
        let zio = self.in_flight.iter().filter(done).nth(nth).unwrap().zio;
        let at = self
            .in_flight
            .iter()
            .position(|one| one.zio == zio)
            .unwrap();
        let one = self.in_flight.remove(at);
        for write in self.writes.iter_mut().filter(|write| write.zio == zio) {
            write.told = Some(self.now);
        }
        self.covered = self.covered.max(one.flush.unwrap_or(0));
        self.store.lossy_mut().unwrap().told(zio, self.now);
    }

    fn hang_up(&mut self) {
        if !self.in_flight.is_empty() {
            let at = self.draw(self.in_flight.len() as u64) as usize;
            let one = self.in_flight.remove(at);
            self.store.lossy_mut().unwrap().forget(one.zio);
        }
    }

    /// The content after these writes.
    fn content(&self, has: impl Fn(&Write) -> bool) -> Vec<u8> {
        let mut content = self.base.clone();
        for write in self.writes.iter().filter(|write| has(write)) {
            content[write.offset..write.offset + write.length].fill(write.value);
        }
        content
    }

    fn is_durable(&self, write: &Write) -> bool {
        let told = |told| write.fua || told <= self.covered;
        write.sure || write.told.is_some_and(told)
    }

    /// Whether a later write has durably replaced a byte.
    fn is_replaced_durably(&self, write: &Write, at: usize) -> bool {
        let has = |other: &Write| (other.offset..other.offset + other.length).contains(&at);
        let mut writes = self.writes.iter();
        writes.any(|other| other.at > write.at && self.is_durable(other) && has(other))
    }

    fn is_pending(&self, write: &Write) -> bool {
        self.in_flight.iter().any(|one| one.zio == write.zio)
    }

    fn check_read(&self) {
        same(&self.read(), &self.content(|_| true), "a read");
    }

    fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0xee; SIZE as usize];
        assert_eq!(
            self.store.read(0, &mut bytes),
            super::super::Attempt::Done(Ok(()))
        );
        bytes
    }

    fn medium(&mut self) -> Vec<u8> {
        let mut bytes = vec![0xee; SIZE as usize];
        let lossy = self.store.lossy_mut().unwrap();
        Medium::read(lossy.inner(), 0, &mut bytes).unwrap();
        bytes
    }

    /// Checks that at the end of a flush the medium has the bytes that the flush covers and that no later
    /// write has replaced.
    fn check_medium(&mut self, arrived: u64) {
        let medium = self.medium();
        let mut newest: Vec<Option<&Write>> = vec![None; SIZE as usize];
        for write in &self.writes {
            newest[write.offset..write.offset + write.length].fill(Some(write));
        }
        for (at, write) in newest.iter().enumerate() {
            if let Some(write) =
                write.filter(|write| write.told.is_some_and(|told| told <= arrived))
            {
                assert_eq!(medium[at], write.value, "byte {at}");
            }
        }
    }

    fn cut(&mut self) {
        let mut cut = Cut {
            keep: [Keep::None, Keep::All, Keep::Random][self.draw(3) as usize],
            tear: [None, Some(SECTOR), Some(4096)][self.draw(3) as usize],
            seed: self.draw(1 << 32),
            then: [Then::Off, Then::GoesOn][self.draw(2) as usize],
        };
        if cut.tear.is_some() {
            // The model does not know what is below a torn write that stays.
            cut.then = Then::Off;
        }
        self.end_batch();
        if !cut.goes_on() {
            while !self.in_flight.is_empty() {
                self.hang_up();
            }
        }
        let now = self.time();
        let loss = self.store.lossy_mut().unwrap().cut(&cut, now);
        let found = self.read();
        self.restore();
        same(&self.read(), &found, "while the medium gets what is left");
        if !cut.goes_on() {
            same(&self.medium(), &found, "the medium");
        }
        self.check_loss(&cut, &loss, &found);
        if !cut.goes_on() {
            self.base = found;
            return self.writes.clear();
        }
        // The writes that stay in the cache are still older than the later ones that have survived.
        let fates = self.writes.iter();
        let fates: Vec<bool> = fates
            .map(|write| self.survives(write, &cut, &loss))
            .collect();
        for (write, survives) in self.writes.iter_mut().zip(fates) {
            write.sure = survives;
        }
        let in_flight = &self.in_flight;
        let pending = |write: &Write| in_flight.iter().any(|one| one.zio == write.zio);
        self.writes.retain(|write| write.sure || pending(write));
    }

    /// Does the tasks of the store until the medium has what the cut has left.
    fn restore(&mut self) {
        let mut ended = Vec::new();
        while !ended
            .iter()
            .any(|one| matches!(one, Ended::Restored(Ok(()))))
        {
            match self.store.lossy_mut().unwrap().go_on(&mut ended) {
                Going::Elsewhere(batch) => {
                    self.batch = Some(batch);
                    let blocking: Arc<dyn Blocking> = self.store.blocking().unwrap();
                    let settled = self.batch.take().unwrap().run(&mut { &*blocking });
                    self.store
                        .lossy_mut()
                        .unwrap()
                        .settled(&settled, &mut ended);
                }
                Going::More(_) => {}
                Going::Idle => panic!("the store must restore its medium"),
            }
        }
        self.note(&ended);
    }

    /// Whether a write, as the report of a cut says, is not lost.
    fn survives(&self, write: &Write, cut: &Cut, loss: &Loss) -> bool {
        let age = |write: &Write| self.now - write.at;
        let is_lost = || {
            loss.writes
                .iter()
                .any(|one| one.age.as_nanos() == age(write))
        };
        match cut.keep {
            _ if self.is_durable(write) => true,
            _ if write.told.is_none() => false,
            Keep::None => false,
            Keep::All => true,
            Keep::Random => !is_lost(),
        }
    }

    fn check_loss(&self, cut: &Cut, loss: &Loss, found: &[u8]) {
        let told = |write: &&Write| {
            let is_durable = |at| self.is_replaced_durably(write, at);
            let range = write.offset..write.offset + write.length;
            write.told.is_some() && !self.is_durable(write) && !range.clone().all(is_durable)
        };
        let unflushed = self.writes.iter().filter(told).count() as u64;
        assert_eq!(loss.unflushed.writes, unflushed, "{loss:?}");
        assert_eq!(loss.early_bytes, 0);
        let stays = |write: &Write| cut.goes_on() && self.is_pending(write);
        if cut.keep != Keep::Random || cut.tear.is_none() {
            let left = self.content(|write| stays(write) || self.survives(write, cut, loss));
            same(found, &left, &format!("{cut:?} {loss:?}"));
            assert_eq!(loss.torn, 0, "{loss:?}");
        }
        if cut.keep == Keep::All {
            assert_eq!(loss.lost.writes, 0);
        }
        if !cut.goes_on() && self.writes.iter().all(|write| write.value > 0) {
            self.check_bytes(cut, loss, found);
        }
    }

    /// Checks each byte by its value, which names the write that it comes from.
    fn check_bytes(&self, cut: &Cut, loss: &Loss, found: &[u8]) {
        let mut torn = 0;
        for write in &self.writes {
            let range = write.offset..write.offset + write.length;
            let survived = |at: &usize| found[*at] == write.value;
            let newer = |at: &usize| {
                let by = self.writes.iter().find(|other| other.value == found[*at]);
                by.is_some_and(|other| other.at > write.at)
            };
            if write.told.is_none() {
                assert!(
                    !range.clone().any(|at| survived(&at)),
                    "nobody was told of {}",
                    write.value
                );
                continue;
            }
            let lost = |at: &usize| !survived(at) && !newer(at);
            let missing = range.clone().filter(lost).count() as u64;
            let age = self.now - write.at;
            let told = loss.writes.iter().find(|one| one.age.as_nanos() == age);
            assert_eq!(told.map_or(0, |one| one.missing), missing, "{cut:?}");
            assert!(
                missing == 0 || !self.is_durable(write),
                "a durable write is whole"
            );
            torn += u64::from(missing > 0 && range.clone().any(|at| survived(&at)));
            let unit = cut.tear.unwrap_or(SIZE) as usize;
            for piece in range
                .clone()
                .collect::<Vec<_>>()
                .chunk_by(|a, b| a / unit == b / unit)
            {
                assert!(
                    !piece.iter().any(lost) || !piece.iter().any(survived),
                    "a torn piece"
                );
            }
        }
        assert_eq!(loss.torn, torn, "{loss:?}");
    }
}

/// Checks that bytes are as expected.
fn same(found: &[u8], expected: &[u8], what: &str) {
    let at = found
        .iter()
        .zip(expected)
        .position(|(one, other)| one != other);
    assert!(at.is_none(), "byte {at:?} differs: {what}");
}

/// Makes this many power cuts, in schedules of 150 steps.
fn cut_often(cuts: u64, open: impl Fn() -> Store) {
    let (mut made, mut seed) = (0, 0);
    while made < cuts {
        seed += 1;
        let mut world = World::new(open(), seed);
        for _ in 0..150 {
            made += u64::from(world.step());
        }
        world.cut();
    }
}

/// How many power cuts to make. `DASHPOT_CUTS` sets the number.
fn cuts() -> u64 {
    let asked = std::env::var("DASHPOT_CUTS").ok();
    asked.and_then(|asked| asked.parse().ok()).unwrap_or(1_000)
}

#[test]
fn a_power_cut_of_a_disk_in_memory_takes_what_no_client_was_told_of() {
    cut_often(cuts(), || {
        open_one(disk("d0", lossy(StoreConfig::Ram), Some(SIZE)))
            .unwrap()
            .store
    });
}

#[test]
fn a_power_cut_of_a_disk_in_a_file_takes_what_no_client_was_told_of() {
    let (_directory, path) = directory_of(SIZE);
    let open = || {
        std::fs::write(&path, vec![0; SIZE as usize]).unwrap();
        let disk = disk("d0", lossy(StoreConfig::File(path.clone())), Some(SIZE));
        open_one(disk).unwrap().store
    };
    cut_often(cuts() / 10, open);
}
