//! Pairs the beginnings and ends of calls by their threads, because a thread has one call at a time.
//!
//! The file of a call is the first file that the file system's events show before the call ends. If the
//! kernel lost events, the pairing may have missed the end of a call, and the thread's next end may belong to
//! another call. If events were lost during a call, the pairing therefore gives up the call at the next event
//! of its thread, and counts it.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::{FileId, Sync, SyncCall};
use crate::io::{Comm, Owner};

/// An event that a thread raises: a call that syncs begins or ends, or the file system syncs a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyncEvent {
    /// When the event happened.
    pub(crate) at_ns: u64,
    /// The thread that raises the event.
    pub(crate) pid: i32,
    /// The kind of event.
    pub(crate) what: SyncWhat,
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SyncWhat {
    /// A call begins.
    Begin {
        /// The kind of call.
        call: SyncCall,
        /// The descriptor of the call's file, if the call has a descriptor.
        fd: Option<i32>,
        /// The first byte of the call's range, and the length of the range.
        range: Option<(u64, u64)>,
    },
    /// The file system syncs a file.
    File(FileId),
    /// A call ends, with this errno or 0.
    End(SyncCall, i32),
}

/// The facts about a call's thread, at the time when the call began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Caller {
    pub(crate) thread: Option<Comm>,
    pub(crate) owner: Owner,
    /// The file behind the call's descriptor, if the probe could look it up.
    pub(crate) file: Option<FileId>,
}

/// The calls in flight.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    open: HashMap<i32, Open, RandomState>,
    /// How many calls ended although no event had shown their beginning.
    pub(crate) unmatched: u64,
    /// How many calls were given up.
    pub(crate) dropped: u64,
}

#[derive(Debug)]
struct Open {
    sync: Sync,
    /// Whether an event of the file system has shown the file.
    is_told: bool,
    is_doubtful: bool,
}

impl Calls {
    /// Takes the next event, in order of time. Returns the call that the event ends, if any.
    pub(crate) fn take(
        &mut self,
        event: &SyncEvent,
        caller: impl FnOnce() -> Caller,
    ) -> Option<Sync> {
        match event.what {
            SyncWhat::Begin { call, range, .. } => self.begin(event, call, range, caller()),
            SyncWhat::File(file) => self.tell(event.pid, file),
            SyncWhat::End(call, error) => return self.end(event, call, error),
        }
        None
    }

    /// Notes that events were lost.
    pub(crate) fn lost(&mut self) {
        self.open
            .values_mut()
            .for_each(|open| open.is_doubtful = true);
    }

    /// The calls in flight, except those that may have ended unseen, in no particular order.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &Sync> {
        let open = self.open.values().filter(|open| !open.is_doubtful);
        open.map(|open| &open.sync)
    }

    fn begin(
        &mut self,
        event: &SyncEvent,
        call: SyncCall,
        range: Option<(u64, u64)>,
        caller: Caller,
    ) {
        let sync = Sync {
            call,
            tid: event.pid,
            thread: caller.thread,
            owner: caller.owner,
            began_ns: event.at_ns,
            ended_ns: None,
            error: 0,
            range,
            file: caller.file,
        };
        let open = Open {
            sync,
            is_told: false,
            is_doubtful: false,
        };
        if self.open.insert(event.pid, open).is_some() {
            self.dropped += 1;
        }
    }

    fn tell(&mut self, pid: i32, file: FileId) {
        match self.open.get_mut(&pid) {
            // Syncs without a call come from 32-bit programs, from io_uring, and from writes to files that were
            // opened with `O_SYNC`.
            None => {}
            // `sync` visits one file system after another, and is a call on all of them.
            Some(open) if open.is_told || open.sync.call == SyncCall::Sync => {}
            Some(open) => {
                open.is_told = true;
                open.sync.file = Some(file);
            }
        }
    }

    fn end(&mut self, event: &SyncEvent, call: SyncCall, error: i32) -> Option<Sync> {
        let Some(open) = self.open.remove(&event.pid) else {
            self.unmatched += 1;
            return None;
        };
        if open.is_doubtful || open.sync.call != call {
            self.dropped += 1;
            return None;
        }
        Some(Sync {
            ended_ns: Some(event.at_ns),
            error,
            ..open.sync
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Number;
    use crate::sync::Storage;
    use proptest::prelude::*;

    /// A call of a naive model: its thread, beginning and end, the file that the file system's event shows,
    /// and whether the event of its beginning reaches the pairing.
    #[derive(Clone, Debug)]
    struct Call {
        pid: i32,
        call: SyncCall,
        begin_ns: u64,
        end_ns: u64,
        file: Option<FileId>,
        has_begin: bool,
    }

    fn file(inode: u64) -> FileId {
        let storage = Storage::Device(Number { major: 8, minor: 1 });
        FileId {
            storage,
            inode: Some(inode),
        }
    }

    fn call() -> impl Strategy<Value = (usize, u64, u64, Option<u64>, bool)> {
        (
            0..6_usize,
            1..50_u64,
            1..90_u64,
            prop::option::of(0..5_u64),
            prop::bool::weighted(0.9),
        )
    }

    /// The calls of a thread, one after another.
    fn thread(pid: i32, calls: Vec<(usize, u64, u64, Option<u64>, bool)>) -> Vec<Call> {
        let mut now_ns = 1;
        let mut made = Vec::new();
        for (kind, pause_ns, takes_ns, inode, has_begin) in calls {
            let begin_ns = now_ns + pause_ns;
            now_ns = begin_ns + takes_ns;
            let call = SyncCall::ALL[kind];
            let (end_ns, file) = (now_ns, inode.map(file));
            made.push(Call {
                pid,
                call,
                begin_ns,
                end_ns,
                file,
                has_begin,
            });
        }
        made
    }

    fn events(call: &Call) -> Vec<SyncEvent> {
        let event = |at_ns, what| SyncEvent {
            at_ns,
            pid: call.pid,
            what,
        };
        let kind = call.call;
        let begin = SyncWhat::Begin {
            call: kind,
            fd: None,
            range: None,
        };
        let mut events = Vec::new();
        if call.has_begin {
            events.push(event(call.begin_ns, begin));
        }
        events.extend(
            call.file
                .map(|file| event(call.begin_ns, SyncWhat::File(file))),
        );
        events.push(event(call.end_ns, SyncWhat::End(kind, 0)));
        events
    }

    proptest! {
        /// However the threads' calls overlap, the pairing must report each call with its own beginning, end
        /// and file, show it in flight from its beginning to its end, and count each call whose beginning it
        /// did not see.
        #[test]
        fn each_call_is_found(threads in prop::collection::vec(prop::collection::vec(call(), 0..12), 1..5), cut in 0..600_u64) {
            let calls: Vec<Call> = (1..).zip(threads).flat_map(|(pid, calls)| thread(pid, calls)).collect();
            let mut all: Vec<SyncEvent> = calls.iter().flat_map(events).collect();
            all.sort_by_key(|event| event.at_ns);
            let mut pairing = Calls::default();
            let mut found = Vec::new();
            for event in all.iter().filter(|event| event.at_ns <= cut) {
                found.extend(pairing.take(event, Caller::default));
            }
            let fact = |sync: &Sync| (sync.began_ns, sync.ended_ns, sync.tid, sync.call, sync.file);
            let mut found: Vec<_> = found.iter().map(fact).collect();
            let mut open: Vec<_> = pairing.in_flight().map(fact).collect();
            let truth = |call: &&Call| call.has_begin && call.begin_ns <= cut;
            let ended = |call: &&Call| call.end_ns <= cut;
            let file = |call: &Call| call.file.filter(|_| call.call != SyncCall::Sync);
            let told = |call: &Call, end_ns| (call.begin_ns, end_ns, call.pid, call.call, file(call));
            let seen = || calls.iter().filter(truth);
            let mut expected: Vec<_> = seen().filter(ended).map(|call| told(call, Some(call.end_ns))).collect();
            let mut waiting: Vec<_> = seen().filter(|call| !ended(call)).map(|call| told(call, None)).collect();
            for list in [&mut found, &mut open, &mut expected, &mut waiting] {
                list.sort_unstable_by_key(|(began_ns, _, pid, ..)| (*began_ns, *pid));
            }
            prop_assert_eq!(found, expected);
            prop_assert_eq!(open, waiting);
            let unseen = calls.iter().filter(ended).filter(|call| !call.has_begin).count() as u64;
            prop_assert_eq!((pairing.unmatched, pairing.dropped), (unseen, 0));
        }
    }

    #[test]
    fn a_call_in_flight_at_a_loss_is_given_up_and_counted() {
        let event = |at_ns, what| SyncEvent {
            at_ns,
            pid: 7,
            what,
        };
        let begin = SyncWhat::Begin {
            call: SyncCall::Fsync,
            fd: Some(3),
            range: None,
        };
        let mut calls = Calls::default();
        calls.take(&event(1, begin), Caller::default);
        calls.lost();
        assert_eq!(calls.in_flight().count(), 0);
        assert_eq!(
            calls.take(
                &event(9, SyncWhat::End(SyncCall::Fsync, 0)),
                Caller::default
            ),
            None
        );
        assert_eq!((calls.dropped, calls.unmatched), (1, 0));
        // The end of a call is lost, and then the thread begins its next call.
        calls.take(&event(10, begin), Caller::default);
        calls.lost();
        calls.take(&event(20, begin), Caller::default);
        let found = calls.take(
            &event(25, SyncWhat::End(SyncCall::Fsync, 5)),
            Caller::default,
        );
        assert_eq!(
            found.map(|sync| (sync.began_ns, sync.ended_ns, sync.error)),
            Some((20, Some(25), 5))
        );
        assert_eq!(calls.dropped, 2);
        // The end of another kind of call belongs to a call whose beginning the pairing did not see.
        calls.take(&event(30, begin), Caller::default);
        assert_eq!(
            calls.take(
                &event(31, SyncWhat::End(SyncCall::Sync, 0)),
                Caller::default
            ),
            None
        );
        calls.take(&event(40, SyncWhat::File(file(1))), Caller::default);
        assert_eq!((calls.dropped, calls.in_flight().count()), (3, 0));
    }
}
