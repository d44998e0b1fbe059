//! Control: the messages from other threads, the answers to them, and the progress of a shutdown.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use dashpot_engine::{Answer, CommandError, CommandId, Duration, Instant};

use crate::mailbox::Mailbox;
use crate::message::{CommandAnswer, Message};

pub(super) struct Control {
    mailbox: Arc<Mailbox<Message>>,
    /// Messages that the shard has not handled yet.
    messages: VecDeque<Message>,
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
            answers: HashMap::new(),
            commands: 0,
            shutdown: None,
            lost: 0,
        }
    }

    pub(super) fn mailbox(&self) -> &Arc<Mailbox<Message>> {
        &self.mailbox
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

    /// Puts messages that had to wait in front of all others.
    pub(super) fn hand_back(&mut self, waiting: Vec<Message>) {
        for message in waiting.into_iter().rev() {
            self.messages.push_front(message);
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

/// How long a shutdown waits for clients to receive their last replies.
const LAST_REPLIES: Duration = Duration::from_secs(1);
