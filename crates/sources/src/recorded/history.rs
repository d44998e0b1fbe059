//! The history of a recording, from its marks: which devices recorders watched, and when. If the recording
//! was cut out of another recording, the history also has the conditions of the cut.

use std::collections::BTreeSet;

use dashpot_observe::{Knows, Layer, Stacked};
use dashpot_recording::{Event, Mark};

use super::spans::Period;
use crate::owner::Owner;

/// The history of a recording.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The devices that were watched, by layer.
    pub(super) devices: BTreeSet<(Layer, String)>,
    /// The kernel's disks that are over others, and when the recorder found it.
    pub(super) stacked: Vec<(u64, Stacked)>,
    /// The facts that are known about the I/Os of disks, which may be the kernel's or a daemon's; `None` if no
    /// disk was watched.
    pub(super) disks: Option<Knows>,
    /// The times in which the recording was made. An end of `u64::MAX` means that the recording has
    /// no mark for this end.
    sessions: Vec<Period>,
    /// The owners whose disks the recorder stopped watching while it went on with the others, and when it
    /// stopped.
    pub(super) ends: Vec<(Owner, u64)>,
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
                Event::Stacked => {
                    let own = stacked_of(mark).map(|own| (mark.at_ns, own));
                    history.stacked.extend(own);
                }
                Event::WatchEnded => history.ends.extend(end_of(mark)),
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
        let layer = layer_of(kind);
        self.devices.insert((layer, device.clone()));
        if layer == Layer::Disk {
            self.disks = Some(if kind == KERNEL_DISK {
                Knows::Kernel
            } else {
                Knows::Zios
            });
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

/// The device of a mark, and the devices beneath it.
fn stacked_of(mark: &Mark) -> Option<Stacked> {
    let (layer, over) = mark.text.as_deref()?.split_once(": ")?;
    Some(Stacked {
        layer: Layer::of_word(layer),
        device: mark.device.clone()?,
        over: over.split(", ").map(str::to_owned).collect(),
    })
}

/// The layer of a device, from the word in its mark.
pub(super) fn layer_of(kind: &str) -> Layer {
    match kind {
        KERNEL_DISK => Layer::Disk,
        KERNEL_FS => Layer::Fs,
        layer => Layer::of_word(layer),
    }
}

/// The owner whose disks the recorder stopped watching, and the time at which it stopped, both from its mark.
fn end_of(mark: &Mark) -> Option<(Owner, u64)> {
    let owner = Owner::of_text(mark.text.as_deref()?)?;
    Some((owner, mark.at_ns))
}

/// The parts of sessions in which the disks of an owner were recorded, too.
pub(super) fn sessions_of(owner: Owner, sessions: &[Period], ends: &[(Owner, u64)]) -> Vec<Period> {
    let ended = |session: &Period| {
        let own = ends
            .iter()
            .filter(|(whose, at)| *whose == owner && session.has(*at));
        own.map(|(_, at_ns)| *at_ns).min().unwrap_or(session.to_ns)
    };
    let part = |session: &Period| Period {
        to_ns: ended(session),
        ..*session
    };
    sessions.iter().map(part).collect()
}

/// Whether the recording had gone on without the disks of an owner before a period began.
pub(super) fn is_without(
    owner: Owner,
    sessions: &[Period],
    ends: &[(Owner, u64)],
    period: Period,
) -> bool {
    let is_in = |sessions: &[Period]| sessions.iter().any(|one| one.shared_ns(period) > 0);
    is_in(sessions) && !is_in(&sessions_of(owner, sessions, ends))
}

/// The word that marks use for a kernel disk, unless the recording has a daemon's disks, too. For all other
/// devices, marks use the word of the layer.
pub const KERNEL_DISK: &str = "kernel disk";
/// The word that marks use for a kernel device whose sync calls are recorded.
pub const KERNEL_FS: &str = "kernel fs";

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
    fn a_recording_of_both_has_two_layers_and_each_owner_its_own_end() {
        let watched = |device: &str, kind: &str| Mark {
            device: Some(device.to_owned()),
            text: Some(kind.to_owned()),
            ..mark(Event::Watched, 10)
        };
        let both = History::of(&[watched("vda", "kernel"), watched("vda", "disk")]);
        let layers: Vec<Layer> = both.devices.iter().map(|(layer, _)| *layer).collect();
        assert_eq!(
            (layers, both.disks),
            (vec![Layer::Disk, Layer::Kernel], Some(Knows::Zios))
        );
        let alone = History::of(&[watched("vda", KERNEL_DISK), watched("vda", KERNEL_FS)]);
        assert_eq!(alone.disks, Some(Knows::Kernel));
        let ended = History::of(&[Mark {
            text: Some("daemon: it went away: see its log".to_owned()),
            ..mark(Event::WatchEnded, 15)
        }]);
        assert_eq!(ended.ends, [(Owner::Daemon, 15)]);
        let nameless = History::of(&[Mark {
            text: Some("daemon".to_owned()),
            ..mark(Event::WatchEnded, 15)
        }]);
        assert_eq!(nameless.ends, ended.ends);
        let sessions = [period(10, 21), period(50, 70)];
        let own = |owner| sessions_of(owner, &sessions, &ended.ends);
        assert_eq!(own(Owner::Daemon), [period(10, 15), period(50, 70)]);
        assert_eq!(own(Owner::Kernel), sessions);
        let is_without = |owner, from_ns, to_ns| {
            is_without(owner, &sessions, &ended.ends, period(from_ns, to_ns))
        };
        assert!(is_without(Owner::Daemon, 15, 21) && !is_without(Owner::Kernel, 15, 21));
        assert!(!is_without(Owner::Daemon, 14, 21) && !is_without(Owner::Daemon, 15, 51));
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
