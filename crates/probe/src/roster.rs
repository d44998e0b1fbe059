//! The disks that a watch knows: the one place that says which devices exist now.
//!
//! A number or a name does not identify a disk, because a later disk may get both. The kernel gives each disk
//! a sequence number, and a new directory in sysfs; together with the device's number they identify the disk.
//! The kernel also counts the events that it sends to udev (`/sys/kernel/uevent_seqnum`), so a look at all
//! devices is needed only when this count has changed.

use std::collections::{BTreeSet, HashMap};
use std::mem::{replace, take};
use std::path::Path;
use std::sync::Arc;

use crate::device::{Device, Number, SYS, exists, list, parsed};
use crate::io::Io;
use crate::stack::beneath;

/// The disks of a watch, present and gone.
#[derive(Debug)]
pub struct Roster {
    /// Whether disks that appear later are watched, too.
    takes_later: bool,
    known: Vec<Known>,
    /// The directories in sysfs of all devices at the last look, also of those without a size.
    homes: HashMap<Number, u64>,
    /// The names that the kernel has given to disks of this watch. The kernel uses few, again and again.
    plain: BTreeSet<Arc<str>>,
    /// The kernel's count of events for udev at the last look.
    events: Option<u64>,
    /// When the roster last looked at all devices.
    looked_ns: u64,
    /// Until when the devices are known to be those of that look.
    sure_ns: u64,
    changes: Changes,
}

/// A disk or a partition that the watch knows.
#[derive(Clone, Debug)]
pub struct Known {
    pub device: Device,
    /// The name for reports: the device's own, or, if an earlier disk had it, this name with the disk's
    /// sequence number, such as `loop0#31`.
    pub name: Arc<str>,
    /// Whether the device no longer exists.
    pub is_gone: bool,
    /// Whether the watch reports the device. If a disk has replaced a device that the user named, it is not
    /// the disk that the user meant.
    pub is_watched: bool,
    /// The names of the disks beneath the device, if sums of all disks would count its I/Os twice: the user named
    /// no device, so the disks beneath are watched, too.
    pub over: Vec<String>,
    /// Whether the kernel made the disk earlier, and its driver has only given it another medium. The kernel's
    /// counters of the disk then go on.
    pub is_reused: bool,
    /// The times of the look that did not find the device yet and of the look that found it: it appeared
    /// between them. Both are 0 if the device was there before the watch.
    appeared_ns: (u64, u64),
    /// The time of the look that did not find the device any more.
    gone_ns: u64,
}

/// The disks that have appeared or vanished since the caller last asked.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// The names of the disks that have appeared and are watched.
    pub appeared: Vec<Arc<str>>,
    /// The disks that have vanished.
    pub vanished: Vec<Gone>,
}

/// A disk that has vanished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The disk's name.
    pub name: Arc<str>,
    /// The name of the disk that has the number of the vanished one now, and whether that disk is watched.
    pub replaced: Option<(Arc<str>, bool)>,
}

/// The place of an I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Belongs {
    /// It belongs to the device with this name.
    Of(Arc<str>),
    /// It belongs to a device that is not watched, or not to any known device.
    Elsewhere,
    /// It ran while one disk replaced another, so that it may belong to either of them.
    Undecided,
}

impl Roster {
    /// Knows these devices and, if `takes_later`, each whole disk that appears later.
    pub fn new(devices: &[Device], takes_later: bool) -> Roster {
        Roster::new_in(Path::new(SYS), devices, takes_later)
    }

    fn new_in(sys: &Path, devices: &[Device], takes_later: bool) -> Roster {
        let all = list(sys).unwrap_or_default();
        let known = devices.iter().map(|device| Known {
            device: device.clone(),
            name: device.name.as_str().into(),
            is_gone: false,
            is_watched: true,
            over: over(sys, device, &all, takes_later),
            is_reused: false,
            appeared_ns: (0, 0),
            gone_ns: u64::MAX,
        });
        let known: Vec<Known> = known.collect();
        Roster {
            takes_later,
            plain: known.iter().map(|one| Arc::clone(&one.name)).collect(),
            known,
            homes: HashMap::new(),
            events: None,
            looked_ns: 0,
            sure_ns: 0,
            changes: Changes::default(),
        }
    }

    /// The watched devices, present and gone, in the order in which they appeared.
    pub fn watched(&self) -> impl Iterator<Item = &Known> {
        self.known.iter().filter(|one| one.is_watched)
    }

    /// The watched devices that no longer exist.
    pub fn gone(&self) -> impl Iterator<Item = Gone> {
        self.watched()
            .filter(|one| one.is_gone)
            .map(|one| self.gone_of(one))
    }

    /// Whether all devices have vanished, and no device can appear.
    pub fn is_over(&self) -> bool {
        !self.takes_later && !self.known.is_empty() && self.watched().all(|one| one.is_gone)
    }

    /// Whether the kernel's disk behind a device was there at the last look, be it with another medium or none.
    pub fn has_home(&self, device: &Device) -> bool {
        self.homes.get(&device.number) == Some(&device.home)
    }

    /// The changes since the last call of this function.
    pub fn take_changes(&mut self) -> Changes {
        take(&mut self.changes)
    }

    /// Looks for devices that have appeared or vanished, at the time `now_ns`. Returns whether it found any.
    /// The caller may call it often: mostly it reads one number.
    pub fn look(&mut self, now_ns: u64) -> bool {
        self.look_in(Path::new(SYS), now_ns)
    }

    fn look_in(&mut self, sys: &Path, now_ns: u64) -> bool {
        let events = parsed(&sys.join("kernel/uevent_seqnum"));
        let is_due = now_ns >= self.looked_ns.saturating_add(LOOK_NS);
        let sure_ns = replace(&mut self.sure_ns, now_ns);
        if events.is_some() && events == self.events && !is_due {
            return false;
        }
        let Ok(all) = list(sys) else {
            // Nothing is known of this moment: no disk has vanished, and the next call looks again.
            self.sure_ns = sure_ns;
            return false;
        };
        (self.events, self.looked_ns) = (events, now_ns);
        let there = all.iter().filter(|device| device.is_there_in(sys));
        let there: Vec<&Device> = there.collect();
        let vanished = self.forget_absent(&there, now_ns);
        let appeared = self.add_new(sys, &all, (sure_ns, now_ns));
        let has_changed = !vanished.is_empty() || appeared;
        self.homes = all.iter().map(|one| (one.number, one.home)).collect();
        let vanished = vanished.iter().map(|at| self.gone_of(&self.known[*at]));
        let vanished: Vec<Gone> = vanished.collect();
        self.changes.vanished.extend(vanished);
        self.forget_oldest();
        has_changed
    }

    /// Marks the devices that are no longer there. Returns their places in the list.
    fn forget_absent(&mut self, there: &[&Device], now_ns: u64) -> Vec<usize> {
        let mut vanished = Vec::new();
        for (at, one) in self.known.iter_mut().enumerate() {
            let is_there = there.iter().any(|device| device.is_same(&one.device));
            if !is_there && !one.is_gone {
                (one.is_gone, one.gone_ns) = (true, now_ns);
                if one.is_watched {
                    vanished.push(at);
                }
            }
        }
        vanished
    }

    /// Adds the devices that were not there at the last look: all whole disks, or those that have replaced a
    /// device. Returns whether it added any.
    fn add_new(&mut self, sys: &Path, all: &[Device], appeared_ns: (u64, u64)) -> bool {
        let before = self.known.len();
        for device in all.iter().filter(|device| device.is_there_in(sys)) {
            let is_known = |one: &Known| !one.is_gone && one.device.is_same(device);
            let replaces = |one: &Known| one.is_gone && one.device.number == device.number;
            let is_wanted = if self.takes_later {
                device.part.is_none()
            } else {
                self.known.iter().any(replaces)
            };
            if !is_wanted || self.known.iter().any(is_known) {
                continue;
            }
            let name = self.name(device);
            let is_reused = self.has_home(device);
            if self.takes_later {
                self.changes.appeared.push(Arc::clone(&name));
            }
            self.known.push(Known {
                device: device.clone(),
                name,
                is_gone: false,
                is_watched: self.takes_later,
                over: over(sys, device, all, self.takes_later),
                is_reused,
                appeared_ns,
                gone_ns: u64::MAX,
            });
        }
        self.known.len() > before
    }

    /// A name that no other disk has. The kernel uses no sequence number twice.
    fn name(&mut self, device: &Device) -> Arc<str> {
        let plain: Arc<str> = device.name.as_str().into();
        if self.plain.insert(Arc::clone(&plain)) {
            return plain;
        }
        let numbers = device.sequence.into_iter().chain(2..);
        let mut names = numbers.map(|number| format!("{plain}#{number}"));
        let is_free = |name: &String| self.known.iter().all(|one| *one.name != **name);
        names.find(is_free).unwrap_or_default().into()
    }

    fn gone_of(&self, one: &Known) -> Gone {
        let next = self.known.iter().rev();
        let mut next = next.filter(|next| !next.is_gone && next.device.number == one.device.number);
        Gone {
            name: Arc::clone(&one.name),
            replaced: next
                .next()
                .map(|next| (Arc::clone(&next.name), next.is_watched)),
        }
    }

    /// Bounds the list: a host may make and remove disks all day.
    fn forget_oldest(&mut self) {
        let gone = self.known.iter().filter(|one| one.is_gone).count();
        let mut surplus = gone.saturating_sub(GONE_MAX);
        self.known.retain(|one| {
            // The devices that the user named stay.
            let may_go = self.takes_later || !one.is_watched;
            let is_surplus = one.is_gone && surplus > 0 && may_go;
            surplus -= usize::from(is_surplus);
            !is_surplus
        });
    }

    /// The newest known device that has this sector of a disk. Flushes belong to whole disks only.
    pub(crate) fn of(&self, disk: Number, sector: u64, is_flush: bool) -> Option<&Known> {
        self.all_of(disk, sector, is_flush).next()
    }

    /// Whether the roster should know a disk, and does not: the disk has vanished again.
    pub(crate) fn lacks(&self, disk: Number) -> bool {
        let is_known = || self.known.iter().any(|one| one.device.disk == disk);
        self.takes_later && disk.major != 0 && !is_known() && !exists(Path::new(SYS), disk)
    }

    /// The device of an I/O. Until the device appeared, its number belonged to an earlier disk.
    pub(crate) fn place(&self, io: &Io) -> Belongs {
        let is_flush = io.rwbs.operation() == b'F';
        let mut all = self.all_of(io.device, io.sector, is_flush).peekable();
        while let Some(one) = all.next() {
            let (absent_ns, found_ns) = one.appeared_ns;
            // No I/O of the earlier disk began after a look that did not find it.
            let began_ns = all
                .peek()
                .map_or(0, |earlier| earlier.gone_ns.min(found_ns));
            if io.begun_ns() >= began_ns {
                return if one.is_watched {
                    Belongs::Of(Arc::clone(&one.name))
                } else {
                    Belongs::Elsewhere
                };
            }
            if io.completed_ns > absent_ns {
                return Belongs::Undecided;
            }
        }
        Belongs::Elsewhere
    }

    /// Decides for the I/Os of one disk number that ran while a disk was replaced: those before the longest
    /// time without any I/O are the old disk's, because it takes time to remove a disk and to make one.
    /// Returns each I/O with its device's name, without those of devices that are not watched.
    pub(crate) fn decide(&self, mut ios: Vec<Io>) -> Vec<(Arc<str>, Io)> {
        ios.sort_by_key(Io::begun_ns);
        let Some(first) = ios.first() else {
            return Vec::new();
        };
        let all: Vec<&Known> = self.all_of(first.device, first.sector, false).collect();
        let [new, old, ..] = all[..] else {
            return Vec::new();
        };
        let (absent_ns, found_ns) = new.appeared_ns;
        let old_count = before_longest_gap(&ios, absent_ns, found_ns);
        let placed = ios.into_iter().enumerate().map(|(at, io)| {
            let one = if at < old_count { old } else { new };
            (one, io)
        });
        placed
            .filter(|(one, _)| one.is_watched)
            .map(|(one, io)| (Arc::clone(&one.name), io))
            .collect()
    }

    /// The last moment at which an I/O of this disk may be undecided.
    pub(crate) fn decided_ns(&self, disk: Number) -> u64 {
        self.of(disk, 0, false).map_or(0, |one| one.appeared_ns.1)
    }

    fn all_of(&self, disk: Number, sector: u64, is_flush: bool) -> impl Iterator<Item = &Known> {
        let all = self.known.iter().rev();
        all.filter(move |one| {
            one.device.has(disk, sector) && !(is_flush && one.device.part.is_some())
        })
    }
}

impl Known {
    /// Whether the device appeared during the watch.
    pub fn is_later(&self) -> bool {
        self.appeared_ns.1 > 0
    }
}

/// The disks beneath a device, if all disks are watched.
fn over(sys: &Path, device: &Device, all: &[Device], takes_all: bool) -> Vec<String> {
    if takes_all {
        beneath(sys, device, all)
    } else {
        Vec::new()
    }
}

/// How many of these I/Os, in order of their beginnings, began before the longest time without I/O between
/// the two moments.
fn before_longest_gap(ios: &[Io], from_ns: u64, to_ns: u64) -> usize {
    let mut busy_until_ns = from_ns;
    let mut longest = (0, 0);
    for (at, io) in ios.iter().enumerate() {
        let gap_ns = io.begun_ns().saturating_sub(busy_until_ns);
        longest = longest.max((gap_ns, at));
        busy_until_ns = busy_until_ns.max(io.completed_ns);
    }
    longest
        .max((to_ns.saturating_sub(busy_until_ns), ios.len()))
        .1
}

/// The time after which a look does not trust the kernel's count of events.
const LOOK_NS: u64 = 1_000_000_000;
/// The most vanished disks that the watch of all disks remembers.
const GONE_MAX: usize = 64;

#[cfg(test)]
mod tests;
