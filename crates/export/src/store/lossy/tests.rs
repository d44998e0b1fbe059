//! Tests of a lossy store over a medium whose sync fails, and of the size of its steps.

use dashpot_engine::{Errno, Instant, Outcome, ZioId};

use super::super::medium::Medium;
use super::cache::{BATCH, RUN, VISITS};
use super::disk_sectors::SECTOR;
use super::tasks::PER_VISIT;
use super::{Asker, Change, ChangeAnswer, Ended, Going, Lossy};
use crate::power::{Cut, Keep, Then};

const SIZE: u64 = 64 << 20;

/// A medium that faults as files and devices do: after a failed sync, all later ones fail.
#[derive(Debug, Default)]
struct Bad {
    writes: u64,
    fails: bool,
}

impl Medium for Bad {
    fn waits(&self) -> bool {
        false
    }

    fn read(&self, _: u64, into: &mut [u8]) -> Outcome {
        into.fill(0);
        Ok(())
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Outcome {
        self.writes += 1;
        Ok(())
    }

    fn zero(&mut self, _: u64, _: u64) -> Outcome {
        Ok(())
    }

    fn flush(&mut self) -> Outcome {
        if self.fails { Err(Errno::Io) } else { Ok(()) }
    }

    fn fault(&self) -> Option<&str> {
        None
    }
}

fn ask(lossy: &mut Lossy<Bad>, zio: u32, told_before: u64, change: Change<'_>) {
    let asker = Asker {
        zio: Some(ZioId(zio)),
        client: "c".into(),
        told_before,
        at: Instant::ZERO,
    };
    assert_ne!(lossy.ask(asker, change), ChangeAnswer::Full);
}

/// Makes writes of a sector each, with a sector between them, and tells their clients.
fn write(lossy: &mut Lossy<Bad>, count: u32) {
    for zio in 0..count {
        let (offset, bytes) = (u64::from(zio) * 2 * SECTOR, &[1; SECTOR as usize][..]);
        let fua = false;
        ask(lossy, zio, 0, Change::Write { offset, bytes, fua });
        lossy.told(ZioId(zio), u64::from(zio) + 1);
    }
}

/// Does all tasks. Returns how they end, and how many bytes each step has moved.
fn finish(lossy: &mut Lossy<Bad>) -> (Vec<Ended>, Vec<u64>) {
    let (mut ended, mut steps) = (Vec::new(), Vec::new());
    while let Going::More(moved) = lossy.go_on(&mut ended) {
        steps.push(moved);
    }
    (ended, steps)
}

#[test]
fn a_flush_whose_sync_fails_covers_nothing_also_when_it_is_asked_again() {
    let count = 3 * VISITS as u32;
    let mut lossy = Lossy::new(Bad::default(), SIZE);
    write(&mut lossy, count);
    lossy.medium.fails = true;
    for again in 0..2 {
        let zio = ZioId(count + again);
        ask(&mut lossy, zio.0, count.into(), Change::Flush);
        let (ended, _) = finish(&mut lossy);
        assert_eq!(ended, [Ended::Done(Some(zio), Err(Errno::Io))]);
        assert!(lossy.medium.writes > 0, "earlier batches are at the medium");
        lossy.forget(zio);
    }
    let cut = Cut {
        keep: Keep::None,
        tear: None,
        seed: 1,
        then: Then::Off,
    };
    let loss = lossy.cut(&cut, Instant::ZERO);
    assert_eq!(loss.lost.writes, count.into());
    let mut bytes = [9; 4 * SECTOR as usize];
    lossy.fill_in(0, &mut bytes);
    assert!(bytes[..SECTOR as usize].iter().all(|byte| *byte == 0));
}

#[test]
fn each_step_of_a_full_cache_is_small() {
    let mut lossy = Lossy::new(Bad::default(), SIZE);
    let count = 10 * VISITS as u32;
    write(&mut lossy, count);
    ask(&mut lossy, count, count.into(), Change::Flush);
    let (ended, mut steps) = finish(&mut lossy);
    assert_eq!(ended, [Ended::Done(Some(ZioId(count)), Ok(()))]);
    assert!(lossy.told(ZioId(count), u64::from(count) + 1));
    steps.extend(finish(&mut lossy).1);
    assert!(steps.len() > 10);
    let most = VISITS * PER_VISIT + BATCH + 2 * RUN;
    assert!(steps.iter().all(|moved| *moved <= most), "{steps:?}");
    assert!(lossy.cache.runs.is_empty() && lossy.cache.writes.is_empty());
}

#[test]
fn a_long_write_is_one_run() {
    let mut lossy = Lossy::new(Bad::default(), SIZE);
    let (offset, bytes, fua) = (100, &vec![1; 1 << 20][..], false);
    ask(&mut lossy, 0, 0, Change::Write { offset, bytes, fua });
    assert_eq!(lossy.cache.runs.len(), 1);
}
