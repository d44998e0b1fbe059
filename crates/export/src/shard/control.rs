//! Control: the messages from other threads, the answers to them and to power cuts, and the progress of a
//! shutdown.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use dashpot_engine::{Answer, CommandError, CommandId, DiskId, Duration, Instant, Outcome};

use crate::mailbox::Mailbox;
use crate::message::{CommandAnswer, Message};

pub(super) struct Control {
    mailbox: Arc<Mailbox<Message>>,
    /// Messages that the shard has not handled yet.
    messages: VecDeque<Message>,
    cuts: Cuts,
    /// The functions that take the answers to commands.
    answers: HashMap<CommandId, CommandAnswer>,
    commands: u64,
    shutdown: Option<Shutdown>,
    /// The number of dirty bytes that the shard has given up in its pools.
    lost: u64,
}

/// The phases of a shutdown.
#[derive(Clone, Copy)]
enum Shutdown {
    /// The grace period. Until this moment, held zios may still end in the ordinary way.
    Grace(Instant),
    /// The zios that were still held have failed. Until this moment, clients may still receive the errors for
    /// these zios.
    Last(Instant),
}

/// The next step of a shutdown.
pub(super) enum ShutdownStep {
    /// Make the zios that are held fail now.
    Fail,
    /// End the remaining connections now.
    HangUp,
}

impl Control {
    pub(super) fn new(mailbox: Arc<Mailbox<Message>>) -> Control {
        Control {
            mailbox,
            messages: VecDeque::new(),
            cuts: Cuts::default(),
            answers: HashMap::new(),
            commands: 0,
            shutdown: None,
            lost: 0,
        }
    }

    /// Moves the messages from the mailbox into the control's own queue.
    pub(super) fn collect(&mut self) {
        self.messages.extend(self.mailbox.take());
    }

    pub(super) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    pub(super) fn cuts(&mut self) -> &mut Cuts {
        &mut self.cuts
    }

    /// Puts the cuts that have waited for a batch in front of all messages.
    pub(super) fn retry_cuts(&mut self) {
        for cut in self.cuts.take_waiting().into_iter().rev() {
            self.messages.push_front(cut);
        }
    }

    /// Chooses an id for a command, and remembers the function that takes the command's answer.
    pub(super) fn expect(&mut self, answer: CommandAnswer) -> CommandId {
        self.commands += 1;
        let id = CommandId(self.commands);
        self.answers.insert(id, answer);
        id
    }

    /// Takes the engine's answer to a command, and calls the function that `expect` has remembered for it.
    pub(super) fn answer(&mut self, id: CommandId, answer: Result<Answer, CommandError>) {
        if let Some(to) = self.answers.remove(&id) {
            to(answer);
        }
    }

    /// Notes that the shard gives up this many dirty bytes of its pools, because they cannot reach the disks.
    pub(super) fn lose(&mut self, dirty: u64) {
        self.lost = dirty;
    }

    /// The number of dirty bytes that the shard has given up in its pools.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutdown.is_some()
    }

    /// When the next step of the shutdown is due.
    pub(super) fn shutdown_until(&self) -> Option<Instant> {
        self.shutdown.map(|shutdown| match shutdown {
            Shutdown::Grace(until) | Shutdown::Last(until) => until,
        })
    }

    /// Begins a shutdown, or changes its grace period. Returns false if the grace period is already
    /// over.
    pub(super) fn begin_shutdown(&mut self, now: Instant, grace: Duration) -> bool {
        if matches!(self.shutdown, Some(Shutdown::Last(_))) {
            return false;
        }
        self.shutdown = Some(Shutdown::Grace(now + grace));
        true
    }

    /// Takes the next step of the shutdown, if its time has come.
    pub(super) fn advance_shutdown(&mut self, now: Instant) -> Option<ShutdownStep> {
        match self.shutdown {
            Some(Shutdown::Grace(until)) if now >= until => {
                self.shutdown = Some(Shutdown::Last(now + LAST_REPLIES));
                Some(ShutdownStep::Fail)
            }
            Some(Shutdown::Last(until)) if now >= until => Some(ShutdownStep::HangUp),
            _ => None,
        }
    }
}

/// The power cuts that have not been answered.
#[derive(Default)]
pub(super) struct Cuts {
    /// Cuts that wait until worker threads have finished the batches of the stores.
    waiting: Vec<Message>,
    /// Cuts that have happened. Their answers wait until the media have what is left.
    restoring: Vec<Restoring>,
}

struct Restoring {
    /// The disks whose media lack something.
    disks: Vec<DiskId>,
    outcome: Outcome,
    answer: Box<dyn FnOnce(Outcome) + Send>,
}

impl Cuts {
    pub(super) fn wait(&mut self, cut: Message) {
        self.waiting.push(cut);
    }

    /// Takes the cuts that have waited, because a batch has ended.
    pub(super) fn take_waiting(&mut self) -> Vec<Message> {
        std::mem::take(&mut self.waiting)
    }

    /// Calls `answer` when the media of all disks have what is left.
    pub(super) fn answer(&mut self, disks: Vec<DiskId>, answer: Box<dyn FnOnce(Outcome) + Send>) {
        if disks.is_empty() {
            return answer(Ok(()));
        }
        self.restoring.push(Restoring {
            disks,
            outcome: Ok(()),
            answer,
        });
    }

    /// Notes that the medium of a disk has what a cut has left, or has failed.
    pub(super) fn restored(&mut self, disk: DiskId, outcome: Outcome) {
        let of_disk = |one: &Restoring| one.disks.contains(&disk);
        let Some(at) = self.restoring.iter().position(of_disk) else {
            return;
        };
        let one = &mut self.restoring[at];
        one.disks.retain(|other| *other != disk);
        one.outcome = one.outcome.and(outcome);
        if one.disks.is_empty() {
            let one = self.restoring.remove(at);
            (one.answer)(one.outcome);
        }
    }
}

/// How long a shutdown waits for clients to receive their last replies.
const LAST_REPLIES: Duration = Duration::from_secs(1);
