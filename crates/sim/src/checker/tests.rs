//! The checker must find every planted fault, and must accept a correct history.

use dashpot_engine::{Buf, Random, Span};

use super::history::{History, Writing};
use super::media::Media;
use super::memory::Memory;
use super::sectors::Content;

/// A history of one sector, with numbered writes.
#[derive(Default)]
struct Told {
    history: History,
    writes: u64,
}

impl Told {
    fn begin(&mut self, durable: bool) -> Writing {
        self.writes += 1;
        let writing = Writing {
            write: self.writes,
            first: 7,
            sectors: 1,
            submitted: self.history.moment(),
            durable,
        };
        let content = |place| Content::of(writing.write, place);
        self.history.write_submitted(&writing, true, content);
        writing
    }

    fn write(&mut self) {
        let writing = self.begin(false);
        self.history.write_replied(&writing, true);
    }

    fn read(&mut self, submitted: u64, write: u64) -> bool {
        let content = [content(write)];
        let read = self.history.read_replied(7, submitted, Some(&content));
        read.is_ok()
    }

    fn read_now(&mut self, write: u64) -> bool {
        let submitted = self.history.read_submitted();
        self.read(submitted, write)
    }

    fn flush(&mut self) {
        let submitted = self.history.moment();
        self.history.flushed(submitted);
    }

    fn survivors(&self) -> Vec<u64> {
        let survives = |write: &u64| self.history.may_survive(7, content(*write)).is_ok();
        (0..=self.writes).filter(survives).collect()
    }
}

fn content(write: u64) -> Content {
    match write {
        0 => Content::ZERO,
        _ => Content::of(write, 0),
    }
}

#[test]
fn a_read_returns_the_newest_acknowledged_write() {
    let mut told = Told::default();
    assert!(told.read_now(0));
    told.write();
    told.write();
    assert!(!told.read_now(0) && !told.read_now(1) && told.read_now(2));
}

#[test]
fn a_read_beside_writes_may_return_any_of_them() {
    let mut told = Told::default();
    told.write();
    let before = told.history.read_submitted();
    let writing = told.begin(false);
    assert!(told.read_now(1));
    assert!(told.read_now(2));
    told.history.write_replied(&writing, true);
    assert!(
        told.read(before, 1),
        "it was submitted before the write was acknowledged"
    );
    assert!(!told.read_now(1));
}

#[test]
fn of_writes_at_the_same_time_either_is_last_until_a_read_has_told() {
    let mut told = Told::default();
    let (first, second) = (told.begin(false), told.begin(false));
    told.history.write_replied(&second, true);
    told.history.write_replied(&first, true);
    assert!(told.read_now(2));
    assert!(
        !told.read_now(1),
        "the previous read has returned the other write's content"
    );
    assert!(told.read_now(2));
}

#[test]
fn a_write_that_failed_takes_nothing_away() {
    let mut told = Told::default();
    told.write();
    let failing = told.begin(true);
    told.history.write_replied(&failing, false);
    assert!(told.read_now(1) && told.read_now(2) && told.read_now(1));
    told.write();
    assert!(!told.read_now(2) && told.read_now(3));
}

#[test]
fn power_loss_goes_back_to_the_last_flush() {
    let mut told = Told::default();
    told.write();
    told.write();
    assert_eq!(told.survivors(), [0, 1, 2]);
    told.flush();
    assert_eq!(told.survivors(), [2]);
    told.write();
    assert_eq!(told.survivors(), [2, 3]);
}

#[test]
fn a_flush_does_not_cover_what_is_acknowledged_after_its_submission() {
    let mut told = Told::default();
    told.write();
    let submitted = told.history.moment();
    told.write();
    told.history.flushed(submitted);
    assert_eq!(told.survivors(), [1, 2]);
}

#[test]
fn nothing_goes_back_behind_a_durable_write() {
    let mut told = Told::default();
    told.write();
    let durable = told.begin(true);
    assert_eq!(told.survivors(), [0, 1, 2]);
    told.history.write_replied(&durable, true);
    assert_eq!(told.survivors(), [2]);
}

#[test]
fn a_disk_keeps_what_it_has_flushed_and_any_part_of_the_rest() {
    let mut media = Media::default();
    media.write(0, vec![content(1), content(1)], false);
    let written = media.written();
    media.write(1, vec![content(2), content(2)], false);
    media.flushed(written);
    media.write(2, vec![content(3)], true);
    assert_eq!(media.read(1), content(2));
    let mut seen = Vec::new();
    let mut random = Random::new(1);
    for _ in 0..100 {
        let left = media.after_power_loss(&mut random);
        assert_eq!((*left.get(0), *left.get(2)), (content(1), content(3)));
        seen.push(*left.get(1));
    }
    assert!(seen.contains(&content(1)) && seen.contains(&content(2)));
    assert!(!seen.contains(&Content::ZERO));
}

#[test]
fn a_buffer_that_a_disk_works_on_is_not_to_be_changed() {
    let mut memory = Memory::default();
    let span = Span {
        buf: Buf(3),
        at: 512,
        length: 512,
    };
    assert_eq!(memory.write(span, [content(1)].into_iter()), Ok(()));
    memory.disk_begins(Buf(3));
    assert!(memory.write(span, [content(2)].into_iter()).is_err());
    assert!(memory.free(Buf(3)).is_err());
    assert!(memory.clone_buf(Buf(4), Buf(3)).is_err());
    assert_eq!(memory.clone_buf(Buf(3), Buf(4)), Ok(()));
    memory.disk_ends(Buf(3));
    assert_eq!(memory.free(Buf(3)), Ok(()));
    let all = Span {
        at: 0,
        length: 1024,
        ..span
    };
    assert!(memory.read(all).all(|content| content == Content::UNKNOWN));
    let copied: Vec<Content> = memory.read(Span { buf: Buf(4), ..all }).collect();
    assert_eq!(copied, [Content::UNKNOWN, content(1)]);
}
