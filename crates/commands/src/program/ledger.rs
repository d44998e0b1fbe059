//! The calls that dashpot has received and not answered, in memory that outlives dashpot.
//!
//! The kernel reports each call once. If dashpot is killed, its keeper must answer the calls that dashpot has
//! received, and finds them here. dashpot notes a call when it receives it, and erases the note when the call
//! has its answer. The notes are a hash table with open addressing, so both take a few stores, and the keeper
//! looks at as many notes as the table has, however many calls there were.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use dashpot_sys::SharedWords;
use dashpot_sys::seccomp::CallId;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;

/// The notes.
#[derive(Debug)]
pub(super) struct Ledger {
    file: File,
    words: SharedWords,
    /// Serializes changes of the table.
    changing: Mutex<()>,
}

/// A call that dashpot received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) id: CallId,
    /// The thread that made the call. `None` if the call has no note.
    pub(super) thread: Option<Pid>,
}

impl Ledger {
    pub(super) fn new() -> io::Result<Ledger> {
        let file: OwnedFd = memfd_create("dashpot-calls", MemfdFlags::CLOEXEC)?;
        let file = File::from(file);
        file.set_len((WORDS * size_of::<u64>()) as u64)?;
        Ledger::of(file)
    }

    pub(super) fn from_fd(fd: OwnedFd) -> io::Result<Ledger> {
        Ledger::of(fd.into())
    }

    fn of(file: File) -> io::Result<Ledger> {
        Ok(Ledger {
            words: SharedWords::map(&file, WORDS)?,
            file,
            changing: Mutex::default(),
        })
    }

    /// Notes a call. Returns false if the table has no room near the call's place.
    pub(super) fn note(&self, id: CallId, thread: Option<Pid>) -> bool {
        let _changing = self.changing.lock();
        self.last().store(id.0, Ordering::Release);
        let Some((at, note)) = self.places(id).find(|(_, note)| is_free(note)) else {
            return false;
        };
        let thread = thread.map_or(0, |thread| thread.as_raw_nonzero().get());
        self.thread(at).store(thread as u64, Ordering::Release);
        note.store(id.0, Ordering::Release);
        true
    }

    /// Erases the note of a call that has its answer.
    pub(super) fn erase(&self, id: CallId) {
        let _changing = self.changing.lock();
        let mut places = self.places(id);
        if let Some((_, note)) = places.find(|(_, note)| note.load(Ordering::Acquire) == id.0) {
            note.store(FREE, Ordering::Release);
        }
    }

    /// The calls that wait for an answer. The list also has ids that no call has.
    pub(super) fn received(&self) -> impl Iterator<Item = Received> {
        let noted = (0..NOTES).filter_map(|at| {
            let id = self.note_at(at).load(Ordering::Acquire);
            let thread = self.thread(at).load(Ordering::Acquire);
            (id != FREE).then_some(Received {
                id: CallId(id),
                thread: Pid::from_raw(thread as i32),
            })
        });
        // dashpot may have been killed before it noted the last calls that it received, or while it noted one.
        let last = self.last().load(Ordering::Acquire);
        let later = (last..last.saturating_add(1 + UNNOTED)).map(|id| Received {
            id: CallId(id),
            thread: None,
        });
        noted.chain(later)
    }

    /// The id of the last call that was noted, whether it has its answer or not.
    fn last(&self) -> &AtomicU64 {
        &self.words.words()[2 * NOTES]
    }

    fn note_at(&self, at: usize) -> &AtomicU64 {
        &self.words.words()[2 * at]
    }

    fn thread(&self, at: usize) -> &AtomicU64 {
        &self.words.words()[2 * at + 1]
    }

    /// The places where the note of a call may be, in the order in which they are tried.
    fn places(&self, id: CallId) -> impl Iterator<Item = (usize, &AtomicU64)> {
        // Ids come in a row, and those of long calls are often neighbours. Fibonacci hashing spreads them.
        let first = (id.0.wrapping_mul(GOLDEN) >> (u64::BITS - NOTES.ilog2())) as usize;
        let places = (first..first + PROBES).map(|at| at % NOTES);
        places.map(|at| (at, self.note_at(at)))
    }
}

impl AsFd for Ledger {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn is_free(note: &AtomicU64) -> bool {
    note.load(Ordering::Acquire) == FREE
}

/// How many notes there are. A thread waits in one call at a time, and a program rarely has thousands of
/// threads.
const NOTES: usize = 1 << 16;
/// Each note has two words, the id of the call and its thread. The last word is the id of the last call.
const WORDS: usize = 2 * NOTES + 1;
/// How many places are tried for a note.
const PROBES: usize = 64;
/// The id of a note that is free. The kernel's ids begin at a random number, so no call ever has this one.
const FREE: u64 = 0;
/// 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
/// How many ids after the last note count as received, too. One thread of dashpot receives at a time, so at
/// most one of these ids belongs to a call that dashpot received but did not note. But other ids may come
/// before this one: the kernel gives a call its id before dashpot receives the call, and a signal can interrupt
/// the call until then. This reserve is for the ids of such calls. It costs only the time of as many answers,
/// some hundredths of a second.
const UNNOTED: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::{CallId, Ledger, NOTES, UNNOTED};
    use rustix::process::Pid;
    use std::collections::HashSet;

    /// The ids that the keeper answers, with and without their threads.
    fn answered(ledger: &Ledger) -> [HashSet<u64>; 2] {
        let heir = Ledger::from_fd(ledger.file.try_clone().unwrap().into()).unwrap();
        let (noted, others) = heir
            .received()
            .partition::<Vec<_>, _>(|it| it.thread.is_some());
        [noted, others].map(|calls| calls.iter().map(|it| it.id.0).collect())
    }

    #[test]
    fn calls_without_an_answer_are_found_however_many_calls_there_were() {
        let ledger = Ledger::new().unwrap();
        let first = u64::MAX / 3;
        let is_held = |id: u64| id.is_multiple_of(97);
        let calls = first..first + 10 * NOTES as u64;
        for id in calls.clone() {
            assert!(ledger.note(CallId(id), Pid::from_raw(7)));
            if !is_held(id) {
                ledger.erase(CallId(id));
            }
        }
        let [noted, others] = answered(&ledger);
        assert_eq!(noted, calls.clone().filter(|id| is_held(*id)).collect());
        assert_eq!(others, (calls.end - 1..calls.end + UNNOTED).collect());
    }

    #[test]
    fn a_thousand_calls_in_a_row_may_wait_while_others_come_and_go() {
        let ledger = Ledger::new().unwrap();
        let held: HashSet<u64> = (1..=20_000).collect();
        for id in 1..=4 * NOTES as u64 {
            assert!(ledger.note(CallId(id), Pid::from_raw(7)), "{id}");
            if !held.contains(&id) {
                ledger.erase(CallId(id));
            }
        }
        assert_eq!(answered(&ledger)[0], held);
    }

    #[test]
    fn a_full_table_takes_no_note() {
        let ledger = Ledger::new().unwrap();
        let noted = (1..=2 * NOTES as u64).filter(|id| ledger.note(CallId(*id), Pid::from_raw(7)));
        let noted: HashSet<u64> = noted.collect();
        assert!(noted.len() <= NOTES);
        assert_eq!(answered(&ledger)[0], noted);
    }
}
