//! The calls that dashpot has received, in memory that outlives dashpot.
//!
//! The kernel reports each call once. If dashpot is killed, its keeper must answer the calls that dashpot has
//! received, and finds their ids here. dashpot notes a call when it receives it. It need not erase notes,
//! because an answer to a call that no longer waits does nothing.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use dashpot_sys::seccomp::{Call, CallId};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::Pid;

/// The notes: the id and the thread of each of the last calls, and the id of the first call.
pub(super) struct Ledger {
    file: File,
    has_first: bool,
}

/// A call that dashpot received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) id: CallId,
    /// The thread that made the call. `None` if later calls have overwritten the call's note, or if the call
    /// has no note yet.
    pub(super) thread: Option<Pid>,
}

impl Ledger {
    pub(super) fn new() -> io::Result<Ledger> {
        let file: OwnedFd = memfd_create("dashpot-calls", MemfdFlags::CLOEXEC)?;
        let file = File::from(file);
        file.set_len(FIRST + 8)?;
        Ok(Ledger {
            file,
            has_first: false,
        })
    }

    pub(super) fn from_fd(fd: OwnedFd) -> Ledger {
        Ledger {
            file: fd.into(),
            has_first: true,
        }
    }

    /// Notes a call. Writing a note cannot fail, because its memory exists already.
    pub(super) fn note(&mut self, call: &Call) {
        let id = call.id.0;
        if !self.has_first {
            self.has_first = true;
            let _ = self.file.write_all_at(&id.to_ne_bytes(), FIRST);
        }
        let thread = call
            .thread
            .map_or(0, |thread| thread.as_raw_nonzero().get());
        let mut note = [0; NOTE as usize];
        note[..8].copy_from_slice(&id.to_ne_bytes());
        note[8..12].copy_from_slice(&thread.to_ne_bytes());
        let _ = self.file.write_all_at(&note, id % NOTES * NOTE);
    }

    /// The ids of all calls that dashpot received, the newest first. The list also has ids between and after
    /// these.
    pub(super) fn received(&self) -> io::Result<impl Iterator<Item = Received> + use<>> {
        let mut bytes = vec![0; FIRST as usize + 8];
        self.file.read_exact_at(&mut bytes, 0)?;
        let (notes, first) = bytes.split_at(FIRST as usize);
        let first = u64::from_ne_bytes(first.try_into().unwrap_or_default());
        let notes = notes.chunks_exact(NOTE as usize).filter_map(read_note);
        let notes: Vec<Received> = notes.collect();
        // dashpot may have been killed before it noted the last call that it received. If that is the first
        // call, the file may have only its id, and no note. A note that was never written has the id 0.
        let last = notes.iter().map(|note| note.id.0).fold(first, u64::max);
        let end = last.saturating_add(1 + UNNOTED);
        let received = move |id| {
            let note = notes.get((id % NOTES) as usize);
            let own = note.filter(|note| note.id.0 == id);
            Received {
                id: CallId(id),
                thread: own.and_then(|note| note.thread),
            }
        };
        Ok((first..end).rev().map(received))
    }
}

impl AsFd for Ledger {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn read_note(note: &[u8]) -> Option<Received> {
    let id = u64::from_ne_bytes(*note.first_chunk()?);
    let thread = i32::from_ne_bytes(*note.get(8..)?.first_chunk()?);
    Some(Received {
        id: CallId(id),
        thread: Pid::from_raw(thread),
    })
}

/// How many of the last calls have notes.
const NOTES: u64 = 1 << 16;
/// The size of a note, in bytes.
const NOTE: u64 = 16;
/// The offset of the first call's id in the file.
const FIRST: u64 = NOTES * NOTE;
/// How many ids after the last note count as received, too. dashpot has one receiver, so at most one of these
/// ids belongs to a call that dashpot received but did not note. But other ids may come before this one: the
/// kernel gives a call its id before dashpot receives the call, and a signal can interrupt the call until
/// then. This reserve is for the ids of such calls. It costs only the time of as many answers, some
/// hundredths of a second.
const UNNOTED: u64 = NOTES;

#[cfg(test)]
mod tests {
    use dashpot_sys::seccomp::{Call, CallId, Caller, SystemCall};

    use super::{FIRST, Ledger, NOTES, UNNOTED};
    use rustix::process::Pid;
    use std::os::unix::fs::FileExt;

    fn call(id: u64) -> Call {
        Call {
            id: CallId(id),
            thread: Pid::from_raw(7),
            caller: Caller::Native(SystemCall::Fsync),
            arguments: [0; 6],
        }
    }

    #[test]
    fn a_first_call_without_a_note_is_found_again() {
        let first = u64::MAX / 3;
        let ledger = Ledger::new().unwrap();
        let _ = ledger.file.write_all_at(&first.to_ne_bytes(), FIRST);
        let received: Vec<u64> = ledger.received().unwrap().map(|it| it.id.0).collect();
        let expected: Vec<u64> = (first..=first + UNNOTED).rev().collect();
        assert!(received == expected);
    }

    #[test]
    fn every_call_is_found_again_and_the_last_ones_with_their_threads() {
        for count in [1, 2, 100, NOTES, NOTES + 3] {
            let mut ledger = Ledger::new().unwrap();
            let first = u64::MAX / 3;
            (first..first + count).for_each(|id| ledger.note(&call(id)));
            let heir = Ledger::from_fd(ledger.file.try_clone().unwrap().into());
            let received: Vec<_> = heir.received().unwrap().collect();
            let ids: Vec<u64> = received.iter().map(|it| it.id.0).collect();
            let expected: Vec<u64> = (first..first + count + UNNOTED).rev().collect();
            assert!(ids == expected, "{count}");
            let named = received.iter().filter(|it| it.thread.is_some()).count();
            assert_eq!(named as u64, count.min(NOTES));
        }
    }

    /// The ids that the keeper answers if dashpot was killed after it noted the ids in `noted`.
    fn answered(noted: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut ledger = Ledger::new().unwrap();
        noted.for_each(|id| ledger.note(&call(id)));
        ledger.received().unwrap().map(|it| it.id.0).collect()
    }

    #[test]
    fn the_last_call_is_found_although_signals_interrupted_many_calls_before_it() {
        assert!(answered(5..=7).contains(&1_000));
    }

    #[test]
    fn an_old_call_is_found_although_a_later_call_was_interrupted() {
        let (interrupted, old) = (NOTES + 5, 9);
        let noted = (1..2 * NOTES).filter(|id| *id != interrupted);
        assert!(answered(noted).contains(&old));
    }
}
