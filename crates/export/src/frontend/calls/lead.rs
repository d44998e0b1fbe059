//! The lead: the right of one of the receiver's threads to wait for the next call.
//!
//! This is the pattern of leader and followers (Schmidt and others, 2000): the leader waits for a call, and
//! makes another thread the leader before it works on the call. Here a leader whose work takes only
//! microseconds keeps the lead, because waking a thread takes longer than that.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, panicking};
use std::time::Duration;

use dashpot_engine::Instant;
use dashpot_sys::seccomp::{Answer, Call, CallId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::answers::Answers;
use super::looks::BETWEEN_LOOKS;

/// The receiver's threads.
pub(super) struct Crew {
    answers: Arc<Answers>,
    /// Becomes readable when the threads have to end.
    stop: Arc<OwnedFd>,
    /// Makes the work of one more thread. `None` once the receiver is gone.
    work: Box<dyn Fn() -> Option<Work> + Send + Sync>,
    /// Held by the leader.
    turn: Mutex<Turn>,
    threads: Mutex<Threads>,
    /// Tells a leader that a thread has become idle.
    freed: Condvar,
}

/// The leader's knowledge.
#[derive(Debug, Default)]
struct Turn {
    /// The last call that was received.
    last: Option<CallId>,
    /// The calls that were received and that no thread has begun to look up. All calls that wait are received before the first of them is looked up: their time counts
    /// from here, and until here a signal can interrupt them.
    received: VecDeque<Received>,
    /// When somebody last looked for abandoned calls.
    looked: Option<Instant>,
}

#[derive(Debug, Default)]
struct Threads {
    all: usize,
    /// How many threads wait for the lead.
    idle: usize,
}

/// The work of a thread.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// A thread's right to the lead. The thread may have the lead, or may have passed it on.
pub(super) struct Lead<'a> {
    crew: &'a Crew,
    turn: Option<MutexGuard<'a, Turn>>,
}

/// The leader's next task.
pub(super) enum Next {
    /// Act on a call.
    Call(Received),
    /// Look for calls whose threads were killed.
    Look,
    /// End, because no more calls will come, or because there are enough threads.
    End,
}

/// All threads are busy with look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many calls are looked up at once")]
pub(super) struct Crowded;

/// A call that was received.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) call: Call,
    /// When the call was received.
    pub(super) at: Instant,
    /// Whether the follower has noted the call.
    pub(super) is_noted: bool,
}

impl Crew {
    pub(super) fn new(
        answers: Arc<Answers>,
        stop: Arc<OwnedFd>,
        work: impl Fn() -> Option<Work> + Send + Sync + 'static,
    ) -> Crew {
        Crew {
            answers,
            stop,
            work: Box::new(work),
            turn: Mutex::default(),
            threads: Mutex::default(),
            freed: Condvar::new(),
        }
    }

    /// Starts a thread.
    pub(super) fn start(&self) -> io::Result<()> {
        let work = (self.work)().ok_or(io::ErrorKind::NotFound)?;
        let ended = EndsOnPanic(Arc::clone(&self.stop));
        let named = Builder::new().name("dashpot-calls".to_owned());
        named.stack_size(STACK).spawn(move || {
            let _ended = ended;
            work();
        })?;
        self.threads().all += 1;
        Ok(())
    }

    /// Makes all threads end.
    pub(super) fn end(&self) {
        end(&self.stop);
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lead. `None` if enough threads wait already.
    fn take(&self) -> Option<MutexGuard<'_, Turn>> {
        let mut threads = self.threads();
        if threads.idle == IDLE_MAX {
            threads.all -= 1;
            return None;
        }
        threads.idle += 1;
        drop(threads);
        self.freed.notify_one();
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.threads().idle -= 1;
        Some(turn)
    }

    /// Waits until a thread is idle, or until one more may start. Returns whether one is idle.
    fn has_idle(&self) -> Result<bool, Crowded> {
        let threads = self.threads();
        let is_full = |it: &mut Threads| it.idle == 0 && it.all >= THREADS_MAX;
        let waited = self.freed.wait_timeout_while(threads, PATIENCE, is_full);
        let (mut threads, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if is_full(&mut threads) {
            Err(Crowded)
        } else {
            Ok(threads.idle > 0)
        }
    }
}

impl<'a> Lead<'a> {
    pub(super) fn new(crew: &'a Crew) -> Lead<'a> {
        Lead { crew, turn: None }
    }

    /// Takes the lead, and waits for work.
    pub(super) fn next(&mut self) -> io::Result<Next> {
        let answers = &self.crew.answers;
        let Some(turn) = self.turn.take().or_else(|| self.crew.take()) else {
            return Ok(Next::End);
        };
        let turn = self.turn.insert(turn);
        loop {
            let timeout = match answers.has_held() {
                _ if !turn.received.is_empty() => Some(Timespec::default()),
                true if turn.must_look(answers.now()) => return Ok(Next::Look),
                true => Timespec::try_from(BETWEEN_LOOKS).ok(),
                false => None,
            };
            let mut polled = [
                PollFd::new(answers.listener(), PollFlags::IN),
                PollFd::new(&*self.crew.stop, PollFlags::IN),
            ];
            match poll(&mut polled, timeout.as_ref()) {
                Ok(0) => match turn.received.pop_front() {
                    Some(received) => return Ok(Next::Call(received)),
                    None => continue,
                },
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            let [calls, stop] = polled.map(|it| it.revents());
            if !stop.is_empty() || !calls.contains(PollFlags::IN) {
                for received in turn.received.drain(..) {
                    answers.answer(received.call.id, Answer::GoOn);
                }
                answers.follower().ended();
                return Ok(Next::End);
            }
            if let Some(call) = answers.listener().receive()? {
                let at = answers.now();
                let is_noted = answers.follower().received(&call);
                answers.count_interrupted(turn.gone_before(call.id));
                turn.received.push_back(Received { call, at, is_noted });
            }
        }
    }

    /// Lets another thread receive calls. The thread calls this before it does something that may take long.
    pub(super) fn pass_on(&mut self) -> Result<(), Crowded> {
        if self.turn.is_none() {
            return Ok(());
        }
        if self.crew.has_idle()? || self.crew.start().is_ok() {
            self.turn = None;
        }
        // If no thread can start, the thread keeps the lead, so that calls are received at all.
        Ok(())
    }
}

impl Turn {
    fn must_look(&mut self, now: Instant) -> bool {
        let between = BETWEEN_LOOKS.as_nanos() as u64;
        let is_due = |looked| now.since(looked).as_nanos() >= between;
        let must = self.looked.is_none_or(is_due);
        if must {
            self.looked = Some(now);
        }
        must
    }

    /// How many calls came before this one, and ended before they were received. The kernel numbers calls
    /// without gaps, and reports them in this order.
    fn gone_before(&mut self, id: CallId) -> u64 {
        let last = self.last.replace(id);
        last.map_or(0, |last| id.0.saturating_sub(last.0 + 1))
    }
}

/// If a thread panics, no more calls are received, because its own call would wait for ever. The keeper then
/// answers the calls.
struct EndsOnPanic(Arc<OwnedFd>);

impl Drop for EndsOnPanic {
    fn drop(&mut self) {
        if panicking() {
            end(&self.0);
        }
    }
}

fn end(stop: &OwnedFd) {
    // The descriptor's counter is far from its maximum, so this write never fails.
    let _ = rustix::io::write(stop, &1_u64.to_ne_bytes());
}

/// The largest number of threads. Each is in a look-up of its own, and only a program that makes look-ups wait
/// on purpose can keep so many busy.
const THREADS_MAX: usize = 256;
/// How many threads wait for the lead at most. A thread that is not needed ends.
const IDLE_MAX: usize = 4;
/// The size of a thread's stack in bytes: enough for a search of deep directories.
const STACK: usize = 512 << 10;
/// How long a leader waits for a thread if all are busy, before it lets its own call go on.
const PATIENCE: Duration = Duration::from_millis(100);
