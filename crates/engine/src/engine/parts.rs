//! Commands that take more than one step. The engine ends or issues the zios of a command in parts, but
//! treats every zio as if it had ended or been issued at the time of the command.

use alloc::vec::Vec;

use super::Engine;
use super::part::{Listed, Part, ZIOS_PER_STEP};
use crate::command::Action;
use crate::flight::State;
use crate::inject::{Kind, RuleId};
use crate::time::Instant;
use crate::zio::{DiskId, ZioId};

impl Engine {
    /// Does the first part now, and leaves the rest to the next steps.
    pub(super) fn in_parts(&mut self, part: Part, actions: &mut Vec<Action>) {
        if let Some(rest) = self.some_of(part, ZIOS_PER_STEP, actions) {
            self.parts.push_back(rest);
        }
    }

    /// Continues the oldest unfinished command with at most `most` zios.
    pub(super) fn go_on(&mut self, most: usize, actions: &mut Vec<Action>) {
        if let Some(part) = self.parts.pop_front()
            && let Some(rest) = self.some_of(part, most, actions)
        {
            self.parts.push_front(rest);
        }
    }

    /// When the next part is due.
    #[inline]
    pub(super) fn next_part(&self) -> Instant {
        if self.parts.is_empty() {
            Instant::NEVER
        } else {
            self.now
        }
    }

    /// Does a part of a command. Returns the part that is left, if there is one.
    fn some_of(&mut self, part: Part, most: usize, actions: &mut Vec<Action>) -> Option<Part> {
        match part {
            Part::Release {
                disk,
                rules,
                only_hung,
                mut held,
            } => {
                let gone = |rule, kind| {
                    let of_rules = || rules.as_ref().is_none_or(|rules| rules.contains(&rule));
                    (kind == Kind::Hang || !only_hung) && of_rules()
                };
                self.release_some(disk, gone, first(most, &mut held), actions);
                (!held.is_empty()).then_some(Part::Release {
                    disk,
                    rules,
                    only_hung,
                    held,
                })
            }
            Part::Resume(disk) => {
                let is_done = self.with_disk(disk, actions, |disk, flights, ctx| {
                    disk.issue_suspended(most, flights, ctx)
                });
                (is_done == Some(false)).then_some(Part::Resume(disk))
            }
            Part::Fail {
                disk,
                errno,
                mut held,
            } => {
                let some = first(most, &mut held);
                self.with_disk(disk, actions, |disk, flights, ctx| {
                    for (order, zio) in some {
                        disk.fail(errno, zio, order, flights, ctx);
                    }
                });
                (!held.is_empty()).then_some(Part::Fail { disk, errno, held })
            }
        }
    }

    fn release_some(
        &mut self,
        disk: DiskId,
        gone: impl Fn(RuleId, Kind) -> bool,
        held: impl Iterator<Item = (u64, ZioId)>,
        actions: &mut Vec<Action>,
    ) {
        self.with_disk(disk, actions, |disk, flights, ctx| {
            for (order, zio) in held {
                disk.release(&gone, zio, order, flights, ctx);
            }
        });
    }

    /// Those zios of a disk that are in a `wanted` state, in the order of issue.
    pub(super) fn listed(&self, disk: DiskId, wanted: impl Fn(State) -> bool) -> Listed {
        let flights = self.zios(disk).flights.of_disk(disk);
        let flights = flights.filter(|flight| wanted(flight.state));
        let mut zios: Vec<_> = flights.map(|one| (one.order, one.zio.id)).collect();
        zios.sort_unstable();
        zios.into()
    }
}

fn first(most: usize, held: &mut Listed) -> impl Iterator<Item = (u64, ZioId)> {
    held.drain(..most.min(held.len()))
}
