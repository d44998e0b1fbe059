//! The receiver: the thread that takes calls from the kernel, and finds the disks that they mean.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Builder;

use dashpot_sys::seccomp::{Answer, Call, Caller, Listener};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Session;
use super::answers::Answers;
use super::files::{Files, program};
use super::transport::{Sender, Transport};
use crate::export::{Followed, Follower};

/// The directory of a disk, and the function that takes the session of its calls.
pub(crate) struct Watched {
    pub(crate) directory: PathBuf,
    pub(crate) connect: Box<dyn FnOnce(Session)>,
}

struct Receiver {
    answers: Arc<Answers>,
    files: Files,
    /// In the order of the directories of `files`.
    disks: Vec<Sender>,
    follower: Box<dyn Follower>,
    stop: Arc<OwnedFd>,
    unheld: Arc<AtomicU64>,
    /// The sentences that were printed. Each is printed once.
    said: HashSet<String>,
}

/// Receives the calls of a program until its last process has ended.
pub(crate) fn follow(
    listener: Listener,
    watched: Vec<Watched>,
    follower: Box<dyn Follower>,
) -> io::Result<Followed> {
    let answers = Arc::new(Answers::new(listener));
    let directories = watched.iter().map(|disk| disk.directory.clone());
    let files = Files::new(directories.collect())?;
    let followed = Followed::new()?;
    let mut disks = Vec::new();
    for disk in watched {
        let (sender, transport) = Transport::new(Arc::clone(&answers))?;
        (disk.connect)(Session { transport });
        disks.push(sender);
    }
    let mut receiver = Receiver {
        answers,
        files,
        disks,
        follower,
        stop: followed.stop(),
        unheld: followed.unheld_count(),
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
                    self.say(format!("no calls can be received: {error}"));
                    return;
                }
            }
        }
    }

    /// Waits until a call waits; false if none will, or if the receiver has to stop.
    fn waits_for_call(&self) -> bool {
        loop {
            let mut polled = [
                PollFd::new(self.answers.listener(), PollFlags::IN),
                PollFd::new(&*self.stop, PollFlags::IN),
            ];
            match poll(&mut polled, None) {
                Ok(_) => {
                    let [calls, stop] = polled.map(|it| it.revents());
                    return stop.is_empty() && calls.contains(PollFlags::IN);
                }
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    fn meet(&mut self, call: &Call) {
        let it = match call.caller {
            Caller::Native(it) => it,
            Caller::Foreign(it) => return self.refuse(call, it.name()),
            Caller::Unknown(number) => return self.refuse(call, &format!("call {number}")),
        };
        let found = self.files.find(call, it, &mut *self.follower);
        let found = found.unwrap_or_else(|error| {
            self.unheld.fetch_add(1, Ordering::Relaxed);
            let program = program(call.thread);
            self.say(format!(
                "{} of {program} is not held: its file is not known ({error})",
                it.name()
            ));
            Vec::new()
        });
        // If the call still waits, the files that were found are those of its thread, and not of a later
        // one with the same number.
        if found.is_empty() || !self.answers.listener().waits(call.id) {
            return self.answers.answer(call.id, Answer::GoOn);
        }
        self.hand_over(call, &found);
    }

    fn hand_over(&self, call: &Call, found: &[usize]) {
        let several = found.len() > 1;
        if several {
            self.answers.expect(call.id, found.len());
        }
        for disk in found {
            if self.disks[*disk].send(call.id, several).is_ok() {
                continue;
            }
            match several {
                true => self.answers.answer_one_of(call.id, Answer::GoOn),
                false => self.answers.answer(call.id, Answer::GoOn),
            }
        }
    }

    /// Refuses the call of a program whose arguments mean something else.
    fn refuse(&mut self, call: &Call, name: &str) {
        let program = program(call.thread);
        self.say(format!(
            "{name} of {program} fails with ENOSYS: that program is not built for this machine's \
             own word size; run one that is"
        ));
        self.answers.answer(call.id, Answer::Fail(Errno::NOSYS));
    }

    fn say(&mut self, sentence: String) {
        if self.said.len() < SENTENCES_MAX && !self.said.contains(&sentence) {
            self.follower.say(&sentence);
            self.said.insert(sentence);
        }
    }
}

/// How many sentences are printed at most: a program can have any number of processes.
const SENTENCES_MAX: usize = 16;
