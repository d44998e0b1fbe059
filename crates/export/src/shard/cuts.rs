//! Power cuts that are not answered yet.

use dashpot_engine::{DiskId, Outcome};

use crate::message::Message;

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
