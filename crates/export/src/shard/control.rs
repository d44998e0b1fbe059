//! Control: the messages of other threads, the answers that the shard owes them, and how far a shutdown
//! has come.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use dashpot_engine::{Answer, CommandError, CommandId, Duration, Instant};

use crate::mailbox::Mailbox;
use crate::message::{CommandAnswer, Message};

pub(super) struct Control {
    mailbox: Arc<Mailbox<Message>>,
    /// Messages that the shard has yet to look at.
    messages: VecDeque<Message>,
    /// By command, where its answer goes.
    answers: HashMap<CommandId, CommandAnswer>,
    commands: u64,
    shutdown: Option<Shutdown>,
}

/// How far a shutdown has come.
#[derive(Clone, Copy)]
enum Shutdown {
    /// Zios that are held may end by themselves until then.
    Grace(Instant),
    /// Zios that were held have failed; their replies may be sent until then.
    Last(Instant),
}

/// The next step of a shutdown.
pub(super) enum ShutdownStep {
    /// Zios that are held fail now.
    Fail,
    /// The connections that are left end now.
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
        }
    }

    pub(super) fn mailbox(&self) -> &Arc<Mailbox<Message>> {
        &self.mailbox
    }

    /// Takes the messages that are in the mailbox.
    pub(super) fn collect(&mut self) {
        self.messages.extend(self.mailbox.take());
    }

    pub(super) fn has_messages(&self) -> bool {
        !self.messages.is_empty()
    }

    pub(super) fn next(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// Gives a command its id, and remembers where its answer goes.
    pub(super) fn expect(&mut self, answer: CommandAnswer) -> CommandId {
        self.commands += 1;
        let id = CommandId(self.commands);
        self.answers.insert(id, answer);
        id
    }

    /// The engine has answered a command.
    pub(super) fn answer(&mut self, id: CommandId, answer: Result<Answer, CommandError>) {
        if let Some(to) = self.answers.remove(&id) {
            to(answer);
        }
    }

    pub(super) fn is_shutting_down(&self) -> bool {
        self.shutdown.is_some()
    }

    /// When the next part of the shutdown begins.
    pub(super) fn shutdown_until(&self) -> Option<Instant> {
        self.shutdown.map(|shutdown| match shutdown {
            Shutdown::Grace(until) | Shutdown::Last(until) => until,
        })
    }

    /// Begins a shutdown, or changes the grace period of one. False if that is over already.
    pub(super) fn begin_shutdown(&mut self, now: Instant, grace: Duration) -> bool {
        if matches!(self.shutdown, Some(Shutdown::Last(_))) {
            return false;
        }
        self.shutdown = Some(Shutdown::Grace(now + grace));
        true
    }

    /// The next step of the shutdown, if its time has come.
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

/// How long clients have to take their last replies.
const LAST_REPLIES: Duration = Duration::from_secs(1);
