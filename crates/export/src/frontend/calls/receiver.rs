//! The receiver: the threads that take calls from the kernel, and find the disks that must hold them.
//!
//! At each moment one of these threads leads: it waits for the next call. A call waits for nothing but its own
//! look-up, so before the leader does something that may take long, it [passes the lead on](Lead::pass_on) to
//! another thread. The look-up of a descriptor only takes microseconds, less than waking another thread does,
//! and the leader keeps the lead meanwhile.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dashpot_engine::Instant;
use dashpot_rules::{CallFiles, call_number};
use dashpot_sys::seccomp::{Answer, Call, Caller, Listener, SystemCall};
use rustix::io::Errno;

use super::answers::Answers;
use super::counted::{Cause, count, tracer};
use super::files::{Files, Found};
use super::jobs::Jobs;
use super::lead::{Crew, Crowded, Lead, Next, Received, Work};
use super::looks::Looks;
use super::mapped::Mapped;
use super::sessions::{Connect, OTHERS, PROGRAMS_MAX, Sessions};
use super::subject::{Subject, Unknown, process_name, program};
use super::syncs::Way;
use super::transport::Sender;
use super::wire::Message;
use crate::export::{Counts, Followed, Follower, PathCounts, Unheld, Uring};

/// The files of a disk, and the function that gives the disk's shard the sessions for the calls on these
/// files.
pub(crate) struct Watched {
    pub(crate) files: CallFiles,
    pub(crate) counts: Arc<PathCounts>,
    pub(crate) connect: Connect,
}

/// The parts that the threads share.
struct Receiver {
    answers: Arc<Answers>,
    crew: Crew,
    files: Files,
    /// For each disk, in the order of `files`, the senders of calls to its shard.
    disks: Vec<Sessions>,
    uring: Uring,
    counts: Arc<Counts>,
    looks: Mutex<Looks>,
    /// The causes of which the user has been told. Each is told only once.
    said: Mutex<HashSet<Cause>>,
}

/// Receives the calls of a program until the program's last process has ended.
pub(crate) fn follow(
    listener: Listener,
    watched: Vec<Watched>,
    uring: Uring,
    follower: Box<dyn Follower>,
    clock: fn() -> Instant,
) -> io::Result<Followed> {
    listener.wake_nearby();
    let of_disks = watched.iter().map(|disk| Arc::clone(&disk.counts));
    let followed = Followed::new(of_disks.collect())?;
    if !listener.holds_signals() {
        followed.counts().miss_interrupted();
    }
    let counts = Arc::clone(followed.counts());
    let answers = Arc::new(Answers::new(listener, follower, Arc::clone(&counts), clock));
    let files = watched.iter().map(|disk| disk.files.clone());
    let files = Files::new(files.collect())?;
    let jobs = Jobs::new(Arc::clone(&answers));
    let sessions = |disk: Watched| Sessions::new(disk.connect, Arc::clone(&answers), jobs.clone());
    let disks = watched.into_iter().map(sessions).collect();
    let stop = followed.stop();
    let receiver = Arc::new_cyclic(|receiver: &Weak<Receiver>| {
        let receiver = receiver.clone();
        let work = move || {
            let receiver = receiver.upgrade()?;
            Some(Box::new(move || receiver.work()) as Work)
        };
        Receiver {
            crew: Crew::new(Arc::clone(&answers), stop, work),
            answers,
            files,
            disks,
            uring,
            counts,
            looks: Mutex::default(),
            said: Mutex::default(),
        }
    });
    receiver.crew.start()?;
    Ok(followed)
}

impl Receiver {
    /// Does a thread's work until no more calls will come.
    fn work(&self) {
        let mut lead = Lead::new(&self.crew);
        loop {
            match lead.next() {
                Ok(Next::Call(received)) => self.meet(&received, &mut lead),
                Ok(Next::Look) => self.withdraw_abandoned(&mut lead),
                Ok(Next::End) => return,
                Err(error) => {
                    let sentence = format!("no calls can be received: {error}");
                    self.say(Cause::Other(sentence.clone()), sentence, &mut lead);
                    self.crew.end();
                }
            }
        }
    }

    /// Tells the disks which calls no thread waits for any more.
    fn withdraw_abandoned(&self, lead: &mut Lead<'_>) {
        // If there is no thread to lead, the next look may find one.
        if lead.pass_on().is_err() {
            return;
        }
        let mut looks = lock(&self.looks);
        for id in looks.look(&self.answers) {
            for sender in self.disks.iter().flat_map(Sessions::all) {
                // If the disk is gone, it holds no calls.
                let _ = sender.send(&Message::withdrawal(id));
            }
        }
    }

    fn meet(&self, received: &Received, lead: &mut Lead<'_>) {
        let (call, at) = (&received.call, received.at);
        let it = match call.caller {
            Caller::Native(it) => it,
            Caller::Foreign(it) => return self.refuse(call, it.name(), lead),
            Caller::Unknown(number) => return self.refuse(call, &format!("call {number}"), lead),
        };
        if !received.is_noted {
            return self.let_go(call, at, it, &Crowded.into(), lead);
        }
        if self.answers.is_restart(call) {
            return;
        }
        match self.look_up(call, it, lead) {
            // If the call still waits, the lookup has seen the files of the call's own thread, not those of a
            // later thread with the same number.
            Ok(Seen::Held(held)) if self.answers.listener().waits(call.id) => {
                self.hand_over(call, it, held, at, lead);
            }
            Ok(Seen::Held(_) | Seen::Other) => {
                self.answers.answer(call.id, Answer::GoOn);
                self.answers.count_wait(at);
            }
            Ok(Seen::Refused) => {
                self.answers.answer(call.id, Answer::Fail(Errno::NOSYS));
            }
            Err(error) => self.let_go(call, at, it, &error, lead),
        }
    }

    /// Lets a call go on although a disk may have its file.
    fn let_go(&self, call: &Call, at: Instant, it: SystemCall, why: &Unknown, lead: &mut Lead<'_>) {
        let disks = self.files.asked(it, &call.arguments);
        self.counts.add(&disks, Unheld::UnknownFile, 1);
        let program = program(call.thread);
        let sentence = format!(
            "{} of {program} is not held: its file is not known ({why})",
            it.name()
        );
        self.answers.answer(call.id, Answer::GoOn);
        self.answers.count_wait(at);
        self.say(Cause::Unheld(Unheld::UnknownFile, None), sentence, lead);
    }

    /// Finds the disks that must hold a call. Counts the call if dashpot cannot hold it.
    fn look_up(&self, call: &Call, it: SystemCall, lead: &mut Lead<'_>) -> Result<Seen, Unknown> {
        if let Some(sentence) = tracer(call, it) {
            self.say(Cause::Other(sentence.clone()), sentence, lead);
        }
        let mut subject = Subject::new(call, lead)?;
        let counting = (&*self.counts, self.uring);
        let counted = count(call, it, &self.files, &mut subject, counting)?;
        let found = self.files.find(call, it, &mut subject)?;
        let held = match found.as_slice() {
            [] => None,
            _ => Some(self.held(found, call, it, &mut subject)?),
        };
        if let Some(counted) = counted {
            self.say(counted.cause, counted.sentence, lead);
            if counted.refused {
                return Ok(Seen::Refused);
            }
        }
        if held.as_ref().is_some_and(|held| held.is_crowded) {
            let sentence = format!(
                "more than {PROGRAMS_MAX} programs use the files: reports name the client of all further ones '{OTHERS}'"
            );
            self.say(Cause::Other(sentence.clone()), sentence, lead);
        }
        Ok(held.map_or(Seen::Other, Seen::Held))
    }

    /// Finds the sessions in which disks get a call.
    fn held(
        &self,
        found: Vec<Found>,
        call: &Call,
        it: SystemCall,
        subject: &mut Subject<'_, '_>,
    ) -> Result<Held, Unknown> {
        let mapped = self.files.mapped_file(call, it, subject)?;
        let program = subject.program();
        let mut held = Held {
            on: Vec::new(),
            mapped,
            is_crowded: false,
        };
        for one in found {
            let (sender, is_crowded) = self.disks[one.disk].of_program(program.as_deref())?;
            held.is_crowded |= is_crowded;
            held.on.push((one, sender));
        }
        Ok(held)
    }

    fn hand_over(&self, call: &Call, it: SystemCall, held: Held, at: Instant, lead: &mut Lead<'_>) {
        self.answers.expect(call, held.on.len(), held.mapped);
        for (one, sender) in &held.on {
            let message = Message {
                id: call.id.0,
                arrived: at.as_nanos(),
                offset: one.offset,
                length: one.length,
                op: one.op as u32,
                way: Way::of(it) as u32,
                thread: call
                    .thread
                    .map_or(0, |thread| thread.as_raw_nonzero().get().cast_unsigned()),
                descriptor: call.arguments[0] as u32,
                call: call_number(it.name()).map_or(0, |call| call.get().into()),
            };
            if send(&message, sender, lead).is_err() {
                self.answers.answer_one_of(call.id, Answer::GoOn);
            }
        }
        self.answers.handed_over(call.id);
    }

    /// Refuses a call of a program that is not built for this machine's word size, because the call's
    /// arguments would have another meaning.
    fn refuse(&self, call: &Call, name: &str, lead: &mut Lead<'_>) {
        let sentence = format!(
            "{name} of {} fails with ENOSYS: that program is not built for this machine's own word size; run one \
             that is",
            program(call.thread)
        );
        let process = process_name(call.thread);
        self.answers.answer(call.id, Answer::Fail(Errno::NOSYS));
        self.say(Cause::Other(process), sentence, lead);
    }

    fn say(&self, cause: Cause, sentence: String, lead: &mut Lead<'_>) {
        let mut said = lock(&self.said);
        if said.len() < SENTENCES_MAX && said.insert(cause) {
            drop(said);
            // The user's terminal may be slow, so callers answer a call first where they can.
            let _ = lead.pass_on();
            self.answers.follower().say(&sentence);
        }
    }
}

/// Sends a message to a disk. If the disk's shard is behind, only this thread waits for it.
fn send(message: &Message, sender: &Sender, lead: &mut Lead<'_>) -> Result<(), Errno> {
    match sender.try_send(message) {
        Err(Errno::AGAIN) => {
            let _ = lead.pass_on();
            sender.send(message)
        }
        sent => sent,
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The receiver's decision about a call.
enum Seen {
    /// Disks hold the call.
    Held(Held),
    /// The call fails with `ENOSYS`.
    Refused,
    /// The call concerns no disk.
    Other,
}

/// A call that disks hold.
struct Held {
    /// The disks, and for each of them, the sender of the program's session.
    on: Vec<(Found, Arc<Sender>)>,
    /// The mapped file of an msync.
    mapped: Option<Mapped>,
    /// Whether a disk tells this program no longer apart from others.
    is_crowded: bool,
}

/// The largest number of sentences that the user is told. Their number is limited because a program can have
/// any number of processes.
const SENTENCES_MAX: usize = 16;
