//! Passes commands to the engine.

use dashpot_engine::{Command, Input};

use super::Shard;
use crate::events::Drops;
use crate::message::CommandAnswer;

impl Shard {
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
        let armed = self
            .storage
            .stores
            .disks()
            .any(|disk| engine.has_rules(disk));
        self.rule_marks
            .keep(|disk, rule| engine.has_rule(disk, rule));
        self.timers.meter_mut().set_armed(armed);
    }

    /// Puts the events of finished zios into the ring at once. Returns the counts of dropped events.
    pub(super) fn flush_events(&mut self) -> Drops {
        self.record();
        self.recorder.drops()
    }
}
