//! Handles the messages of other threads: connections, commands, snapshots, events, power cuts.

use dashpot_engine::{Command, Input};

use super::Shard;
use super::connection::Connection;
use crate::events::Drops;
use crate::message::{AttachError, CommandAnswer, Handover, Message};

impl Shard {
    /// Handles messages, but no more than a pass may handle.
    pub(super) fn read_messages(&mut self) {
        for _ in 0..MESSAGES_PER_PASS {
            let Some(message) = self.control.next() else {
                return;
            };
            self.read_clock();
            self.obey(message);
        }
    }

    pub(super) fn obey(&mut self, message: Message) {
        match message {
            Message::Connect(handover) => {
                // If the shard refuses a client, the connection is closed, so the client notices.
                let _ = self.connect(handover);
            }
            Message::Attach(export, attach, answer) => answer(self.attach(export, attach)),
            Message::FailAttachment(export, node, answer) => {
                answer(self.fail_attachment(export, &node));
            }
            Message::Command(command, answer) => self.command(command, answer),
            Message::Snapshot(device, oldest, answer) => {
                if let Some(snapshot) = self.snapshot(device, oldest) {
                    answer(snapshot);
                }
            }
            Message::SnapshotPool(pool, answer) => {
                if let Some(snapshot) = self.snapshot_pool(pool) {
                    answer(snapshot);
                }
            }
            Message::Events(answer) => answer(self.flush_events()),
            Message::Done(id, finished) => self.work_done(id, finished),
            Message::Settled(disk, finished) => self.settled(disk, finished),
            Message::Cut(export, cut, answer) => self.cut_and_answer(export, cut, answer),
            Message::CutPool(pool, cut, answer) => self.cut_pool_and_answer(pool, cut, answer),
            Message::Recorded(pool, outcome) => self.step(Input::Recorded(pool, outcome), None),
            Message::Shutdown(grace) => self.begin_shutdown(grace),
        }
    }

    pub(super) fn connect(&mut self, handover: Handover) -> Result<(), AttachError> {
        let export = handover.export;
        self.takes_clients(export)?;
        let peer = handover.peer.as_str();
        let (client, is_new) = self.exports.connect(export, peer);
        if is_new {
            let device = self.exports.device(export);
            let join = Input::Join {
                device,
                client,
                name: peer,
            };
            self.step(join, None);
            // The id may have belonged to another client until now, so publish that client's events first.
            self.record();
            self.recorder.join(device, client, peer);
        }
        let connection = Connection::new(handover, client, self.timers.now());
        let at = self.connections.insert(connection);
        let Some(connection) = self.connections.get_mut(at) else {
            return Err(AttachError::Closed);
        };
        self.budget.recount(connection);
        if let Err(error) = self.poller.add(at, connection) {
            self.hang_up(at);
            return Err(AttachError::Refused(error));
        }
        self.intake.push(at, connection.inlet_mut());
        Ok(())
    }

    /// Passes a command to the engine.
    pub(super) fn command(&mut self, command: Command, answer: CommandAnswer) {
        let id = self.control.expect(answer);
        match &command {
            Command::Inject { disk, rules, .. } => {
                self.mark(*disk, rules.iter().map(|(rule, _)| *rule));
            }
            Command::Update(rule, _) => {
                if let Some(disk) = self.rule_marks.disk(*rule) {
                    self.mark(disk, std::iter::once(*rule));
                }
            }
            _ => {}
        }
        self.step(Input::Command(id, command), None);
        let engine = &self.engine;
        let armed = self.stores.disks().any(|disk| engine.has_rules(disk));
        self.rule_marks
            .keep(|disk, rule| engine.has_rule(disk, rule));
        self.timers.meter_mut().set_armed(armed);
    }

    /// Puts the events of finished zios into the ring at once. Returns the counts of dropped events.
    fn flush_events(&mut self) -> Drops {
        self.record();
        self.recorder.drops()
    }
}

/// How many messages the shard handles before it looks at the sockets.
const MESSAGES_PER_PASS: usize = 16;
