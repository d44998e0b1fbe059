//! The history of a recording, from its marks: which devices recorders watched, and when. If the recording
//! was cut out of another recording, the history also has the conditions of the cut.

use std::collections::BTreeSet;

use dashpot_observe::{Knows, Layer};
use dashpot_recording::{Event, Mark};

use super::spans::Period;

/// The history of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The devices that were watched, by layer.
    pub(super) devices: BTreeSet<(Layer, String)>,
    /// What is known of the I/Os of disks, if a disk was watched: the disks may be the kernel's or a daemon's.
    pub(super) disks: Option<Knows>,
    /// The times in which the recording was made. An end of `u64::MAX` means that the recording has
    /// no mark for this end.
    sessions: Vec<Period>,
    /// The conditions of the cut; `None` if the recording is not a part of another recording.
    pub(super) cut: Option<String>,
}

impl History {
    pub(super) fn of(marks: &[Mark]) -> History {
        let mut history = History::default();
        for mark in marks {
            match mark.event {
                Event::Began => history.begin(mark.at_ns),
                Event::Ended | Event::Stopped => history.end(mark.at_ns),
                Event::Watched => history.watched(mark),
                Event::Cut => history.cut = Some(mark.text.clone().unwrap_or_default()),
                _ => {}
            }
        }
        history
    }

    fn begin(&mut self, at_ns: u64) {
        self.sessions.push(Period {
            from_ns: at_ns,
            to_ns: u64::MAX,
        });
    }

    fn end(&mut self, at_ns: u64) {
        if let Some(last) = self.sessions.last_mut() {
            last.to_ns = at_ns.saturating_add(1);
        }
    }

    fn watched(&mut self, mark: &Mark) {
        let (Some(device), Some(kind)) = (&mark.device, &mark.text) else {
            return;
        };
        let (layer, knows) = match kind.as_str() {
            KERNEL_DISK => (Layer::Disk, Knows::Kernel),
            KERNEL_FS => (Layer::Fs, Knows::Kernel),
            layer => (Layer::of_word(layer), Knows::Zios),
        };
        self.devices.insert((layer, device.clone()));
        if layer == Layer::Disk {
            self.disks = Some(knows);
        }
    }

    /// The times in which a recorder watched. If a recorder was killed, its session has no mark for its end.
    /// Such a session ends when the next session begins, or else with the last I/O of the recording.
    pub(super) fn sessions(&self, singles: Option<Period>) -> Vec<Period> {
        let nexts = self.sessions.iter().skip(1).map(|next| next.from_ns);
        let last_ns = singles.map_or(0, |singles| singles.to_ns);
        let ends = nexts.chain([last_ns]);
        let mut sessions: Vec<Period> = self.sessions.clone();
        for (session, end_ns) in sessions.iter_mut().zip(ends) {
            if session.to_ns == u64::MAX {
                session.to_ns = end_ns.max(session.from_ns);
            }
        }
        // The oldest marks may have been deleted.
        if let (Some(first), Some(singles)) = (sessions.first_mut(), singles) {
            first.from_ns = first.from_ns.min(singles.from_ns);
        }
        match (sessions.is_empty(), singles) {
            (true, Some(singles)) => vec![singles],
            _ => sessions,
        }
    }
}

/// The word that marks use for a kernel disk. For a daemon's devices, marks use the word of the layer.
pub(crate) const KERNEL_DISK: &str = "kernel disk";
/// The word that marks use for a kernel device whose sync calls are recorded.
pub(crate) const KERNEL_FS: &str = "kernel fs";

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(event: Event, at_ns: u64) -> Mark {
        Mark {
            at_ns,
            clock_ns: 0,
            event,
            device: None,
            n: None,
            text: None,
        }
    }

    fn period(from_ns: u64, to_ns: u64) -> Period {
        Period { from_ns, to_ns }
    }

    #[test]
    fn a_session_lasts_from_its_beginning_to_its_end_or_the_next_beginning() {
        let marks = [
            mark(Event::Began, 10),
            mark(Event::Ended, 20),
            mark(Event::Began, 50),
            mark(Event::Began, 70),
        ];
        let sessions = History::of(&marks).sessions(Some(period(12, 90)));
        assert_eq!(sessions, [period(10, 21), period(50, 70), period(70, 90)]);
        let idle = History::of(&marks[..2]).sessions(None);
        assert_eq!(idle, [period(10, 21)]);
        let unmarked = History::default().sessions(Some(period(1, 2)));
        assert_eq!(unmarked, [period(1, 2)]);
    }
}
