//! The receiver: the thread that takes calls from the kernel, and finds the disks that must hold them.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;

use dashpot_rules::CallFiles;
use dashpot_sys::seccomp::{Answer, Call, Caller, Listener, SystemCall};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::Session;
use super::answers::Answers;
use super::counted::{Cause, count, tracer};
use super::files::{Files, Found};
use super::looks::{BETWEEN_LOOKS, Looks};
use super::restarts::Restarts;
use super::subject::{Subject, Unknown, process_name, program};
use super::syncs::{Syncs, Way};
use super::transport::{Sender, Transport};
use super::wire::Message;
use crate::export::{Counts, Followed, Follower, Unheld, UnheldCounts, Uring};

/// The files of a disk, and the function that gives the disk's shard the session for the calls on these
/// files.
pub(crate) struct Watched {
    pub(crate) files: CallFiles,
    pub(crate) unheld: Arc<UnheldCounts>,
    pub(crate) connect: Box<dyn FnOnce(Session)>,
}

struct Receiver {
    answers: Arc<Answers>,
    files: Files,
    /// For each disk, in the order of `files`, the sender of calls to its shard.
    disks: Vec<Sender>,
    uring: Uring,
    follower: Box<dyn Follower>,
    stop: Arc<OwnedFd>,
    counts: Arc<Counts>,
    restarts: Restarts,
    looks: Looks,
    /// The causes of which the user has been told. Each is told only once.
    said: HashSet<Cause>,
}

/// Receives the calls of a program until the program's last process has ended.
pub(crate) fn follow(
    listener: Listener,
    watched: Vec<Watched>,
    uring: Uring,
    follower: Box<dyn Follower>,
) -> io::Result<Followed> {
    listener.wake_nearby();
    let unheld = watched.iter().map(|disk| Arc::clone(&disk.unheld));
    let followed = Followed::new(unheld.collect())?;
    let counts = Arc::clone(followed.counts());
    let answers = Arc::new(Answers::new(listener, Arc::clone(&counts)));
    let files = watched.iter().map(|disk| disk.files.clone());
    let files = Files::new(files.collect())?;
    let syncs = Syncs::new(Arc::clone(&answers));
    let mut disks = Vec::new();
    for disk in watched {
        let (sender, transport) = Transport::new(Arc::clone(&answers), syncs.clone())?;
        (disk.connect)(Session { transport });
        disks.push(sender);
    }
    let mut receiver = Receiver {
        answers,
        files,
        disks,
        uring,
        follower,
        stop: followed.stop(),
        counts,
        restarts: Restarts::default(),
        looks: Looks::new(),
        said: HashSet::new(),
    };
    Builder::new()
        .name("dashpot-calls".to_owned())
        .spawn(move || receiver.run())?;
    Ok(followed)
}

impl Receiver {
    fn run(&mut self) {
        while self.waits_for_call() {
            match self.answers.listener().receive() {
                Ok(Some(call)) => {
                    self.follower.received(&call);
                    self.meet(&call);
                }
                Ok(None) => {}
                Err(error) => {
                    let sentence = format!("no calls can be received: {error}");
                    self.say(Cause::Other(sentence.clone()), sentence);
                    return;
                }
            }
        }
    }

    /// Waits until the kernel has a call. Returns false if no more calls will come, or if the receiver has to
    /// stop.
    fn waits_for_call(&mut self) -> bool {
        loop {
            let look = self.withdraw_abandoned();
            let mut polled = [
                PollFd::new(self.answers.listener(), PollFlags::IN),
                PollFd::new(&*self.stop, PollFlags::IN),
            ];
            match poll(&mut polled, look.as_ref()) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => {
                    let [calls, stop] = polled.map(|it| it.revents());
                    return stop.is_empty() && calls.contains(PollFlags::IN);
                }
                Err(_) => return false,
            }
        }
    }

    /// Tells the disks which calls no thread waits for any more. Returns the time until the next look, or
    /// `None` if no call is held.
    fn withdraw_abandoned(&mut self) -> Option<Timespec> {
        if !self.answers.has_held() {
            return None;
        }
        for id in self.looks.look(&self.answers) {
            for disk in &self.disks {
                // If the disk is gone, it holds no calls.
                let _ = disk.send(&Message::withdrawal(id));
            }
        }
        Timespec::try_from(BETWEEN_LOOKS).ok()
    }

    fn meet(&mut self, call: &Call) {
        let it = match call.caller {
            Caller::Native(it) => it,
            Caller::Foreign(it) => return self.refuse(call, it.name()),
            Caller::Unknown(number) => return self.refuse(call, &format!("call {number}")),
        };
        if let Some(first) = self.restarts.first_name(call)
            && self.answers.rename(first, call.id)
        {
            return;
        }
        match self.look_up(call, it) {
            // If the call still waits, the lookup has seen the files of the call's own thread, not those of a
            // later thread with the same number.
            Ok(Seen::Held(found, path)) if self.answers.listener().waits(call.id) => {
                self.hand_over(call, it, &found, path);
            }
            Ok(Seen::Held(..) | Seen::Other) => self.answers.answer(call.id, Answer::GoOn),
            Ok(Seen::Refused) => self.answers.answer(call.id, Answer::Fail(Errno::NOSYS)),
            Err(error) => {
                let disks = self.files.asked(it, &call.arguments);
                self.counts.add(&disks, Unheld::UnknownFile, 1);
                let program = program(call.thread);
                let sentence = format!(
                    "{} of {program} is not held: its file is not known ({error})",
                    it.name()
                );
                self.say(Cause::Unheld(Unheld::UnknownFile, None), sentence);
                self.answers.answer(call.id, Answer::GoOn);
            }
        }
    }

    /// Finds the disks that must hold a call. Counts the call if dashpot cannot hold it.
    fn look_up(&mut self, call: &Call, it: SystemCall) -> Result<Seen, Unknown> {
        if let Some(sentence) = tracer(call, it) {
            self.say(Cause::Other(sentence.clone()), sentence);
        }
        let mut subject = Subject::new(call, &mut *self.follower)?;
        let counting = (&*self.counts, self.uring);
        let counted = count(call, it, &self.files, &mut subject, counting)?;
        let found = self.files.find(call, it, &mut subject)?;
        let path = match found.as_slice() {
            [] => None,
            _ => self.files.own_path(call, it, &mut subject)?,
        };
        if let Some(counted) = counted {
            self.say(counted.cause, counted.sentence);
            if counted.refused {
                return Ok(Seen::Refused);
            }
        }
        Ok(match found.is_empty() {
            true => Seen::Other,
            false => Seen::Held(found, path),
        })
    }

    fn hand_over(&mut self, call: &Call, it: SystemCall, found: &[Found], path: Option<PathBuf>) {
        self.answers.expect(call, found.len(), path);
        self.restarts.note(call);
        for one in found {
            let message = Message {
                id: call.id.0,
                offset: one.offset,
                length: one.length,
                op: one.op as u32,
                way: Way::of(it) as u32,
                thread: call
                    .thread
                    .map_or(0, |thread| thread.as_raw_nonzero().get().cast_unsigned()),
                descriptor: call.arguments[0] as u32,
                unused: 0,
            };
            if self.disks[one.disk].send(&message).is_err() {
                self.answers.answer_one_of(call.id, Answer::GoOn);
            }
        }
    }

    /// Refuses a call of a program that is not built for this machine's word size, because the call's
    /// arguments would have another meaning.
    fn refuse(&mut self, call: &Call, name: &str) {
        let sentence = format!(
            "{name} of {} fails with ENOSYS: that program is not built for this machine's own word size; run one \
             that is",
            program(call.thread)
        );
        self.say(Cause::Other(process_name(call.thread)), sentence);
        self.answers.answer(call.id, Answer::Fail(Errno::NOSYS));
    }

    fn say(&mut self, cause: Cause, sentence: String) {
        if self.said.len() < SENTENCES_MAX && self.said.insert(cause) {
            self.follower.say(&sentence);
        }
    }
}

/// The receiver's decision about a call.
enum Seen {
    /// These disks hold the call. If this process cannot open the caller's descriptor, it opens the file by
    /// this path.
    Held(Vec<Found>, Option<PathBuf>),
    /// The call fails with `ENOSYS`.
    Refused,
    /// The call concerns no disk.
    Other,
}

/// The largest number of sentences that the user is told. Their number is limited because a program can have
/// any number of processes.
const SENTENCES_MAX: usize = 16;
