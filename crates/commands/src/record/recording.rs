//! A recording that is being made: a recorder writes the I/Os that sources return.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use dashpot_cli::KeepArgs;
use dashpot_export::complain;
use dashpot_observe::{EarlierIos, FinishedIo, Layer, Predicates, Seen, unplaced_calls};
use dashpot_recording::{Event, MachineClock, Options, Recorder, Summary};
use dashpot_rules::{nice_number, thousands};
use dashpot_sources::{KERNEL_DISK, KERNEL_FS, Owner, run_first};

use super::part::Part;

/// Refuses to continue a recording of other owners' disks, and to continue a part that was cut from a
/// recording.
pub(super) fn check_same(root: &Path, owners: &BTreeSet<Owner>) -> anyhow::Result<()> {
    // If the directory is not a recording or cannot be read, the recorder will refuse it.
    let known = dashpot_recording::Recording::open(root);
    let Ok(marks) = known.and_then(|known| known.marks(&mut Vec::new())) else {
        return Ok(());
    };
    let watched = marks.iter().filter(|mark| mark.event == Event::Watched);
    let has: BTreeSet<Owner> = watched
        .filter_map(|mark| Some(owner_of(mark.text.as_deref()?)))
        .collect();
    let why = match has.is_empty() || has == *owners {
        false => format!("has {}, and not {}", words(&has), words(owners)),
        true if marks.iter().any(|mark| mark.event == Event::Cut) => {
            "is a part of another recording".to_owned()
        }
        true => return Ok(()),
    };
    bail!("'{}' {why}: record in another directory", root.display())
}

/// The owner of a device, from the word in its mark.
fn owner_of(kind: &str) -> Owner {
    match kind {
        KERNEL_DISK | KERNEL_FS => Owner::Kernel,
        layer => Owner::of(Layer::of_word(layer)),
    }
}

fn words(owners: &BTreeSet<Owner>) -> String {
    let words: Vec<&str> = owners.iter().map(|owner| owner.disks()).collect();
    words.join(" and ")
}

/// A recorder, and the user's trigger.
pub(super) struct Recording {
    recorder: Recorder,
    trigger: Option<Predicates>,
    /// Whether the trigger has fired since the last file was sealed.
    has_fired: bool,
    /// The I/Os of each device from before the watch, at the last reading.
    earlier: BTreeMap<(&'static str, String), EarlierIos>,
    /// The devices of which the last mark says that they have such I/Os, or that these are not counted.
    has_earlier: BTreeSet<(&'static str, String)>,
    /// The disks that are marked as over others.
    stacked: BTreeSet<String>,
}

impl Recording {
    /// Begins to record in this directory.
    pub(super) fn create(root: &Path, args: &KeepArgs) -> anyhow::Result<Recording> {
        let options = Options {
            keep_bytes: args.keep.unwrap_or(KEEP_BYTES),
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
            cpu_percent: CPU_PERCENT,
        };
        Ok(Recording {
            recorder: Recorder::create(root, options, Arc::new(MachineClock))?,
            trigger: args.trigger.clone(),
            has_fired: false,
            earlier: BTreeMap::new(),
            has_earlier: BTreeSet::new(),
            stacked: BTreeSet::new(),
        })
    }

    /// Ends a recording whose watch cannot begin, and leaves nothing behind.
    pub(super) fn abandon(self) {
        self.recorder.abandon();
    }

    /// Records until the parts end, the recorder cannot write, or the caller stops the recording. After a
    /// stop, this function reads the parts once more, because I/Os may have ended after the last reading. If
    /// one of two parts fails, the other goes on.
    pub(super) fn run(
        &mut self,
        parts: &mut [Part<'_>],
        mut goes_on: impl FnMut(&Summary) -> bool,
    ) -> anyhow::Result<()> {
        if parts.iter().any(|part| part.owner == Owner::Kernel) {
            run_first();
        }
        self.begin(parts);
        let mut failed = Ok(());
        loop {
            let is_over = !goes_on(&self.recorder.summary());
            if is_over {
                parts.iter_mut().for_each(Part::end);
            }
            for part in parts.iter_mut().filter(|part| !part.has_ended) {
                if let Err(error) = self.read(part) {
                    part.has_ended = true;
                    failed = failed.and(self.fail(part, error));
                }
            }
            if self.recorder.is_due() {
                let in_flight = self.in_flight(parts);
                self.recorder.seal(&in_flight);
                self.has_fired = false;
            }
            let has_ended = parts.iter().all(|part| part.has_ended);
            let is_behind = parts.iter().any(Part::is_behind);
            let has_stopped = self.recorder.summary().stopped.is_some();
            if has_ended || has_stopped || (is_over && !is_behind) {
                return failed;
            }
        }
    }

    /// Marks the devices and the clocks, and writes these marks to the disk at once.
    fn begin(&mut self, parts: &[Part<'_>]) {
        for part in parts {
            // The mark lets readers list a device that has no I/Os, too.
            for (device, kind) in part.kinds() {
                let (device, kind) = (Some(device), Some(kind));
                self.recorder.mark(Event::Watched, device, None, kind);
            }
            if part.is_beside {
                let off_ns = i64::try_from(part.off_ns).unwrap_or(i64::MAX);
                let owner = Some(part.owner.word());
                self.recorder.mark(Event::Clock, None, Some(off_ns), owner);
            }
        }
        // Otherwise readers would not know the devices until the first file is sealed.
        self.recorder.seal(&[]);
    }

    /// Records what a part has seen since the last reading.
    fn read(&mut self, part: &mut Part<'_>) -> anyhow::Result<()> {
        let mut seen = Vec::new();
        let goes_on = part.next(&mut |one| seen.push(one));
        for one in &mut seen {
            self.take(part, one);
        }
        for change in part.changes() {
            let (device, text) = (Some(&*change.device), Some(&*change.text));
            self.recorder.mark(change.event, device, None, text);
        }
        part.has_ended = !goes_on?;
        Ok(())
    }

    /// Marks that a part has failed, and tells the user if the recording goes on without it.
    fn fail(&mut self, part: &mut Part<'_>, error: anyhow::Error) -> anyhow::Result<()> {
        if part.is_beside {
            part.is_left = true;
            let (owner, disks) = (part.owner.word(), part.owner.disks());
            let text = format!("{owner}: {error:#}");
            self.recorder
                .mark(Event::WatchEnded, None, None, Some(&text));
            complain(format_args!(
                "{disks} are not recorded any more, and their last I/Os may be missing: {error:#}"
            ));
        }
        Err(error)
    }

    /// Seals the last file.
    pub(super) fn finish(mut self, parts: &mut [Part<'_>]) -> Summary {
        let in_flight = self.in_flight(parts);
        self.recorder.finish(&in_flight)
    }

    /// Marks the I/Os in flight from before the watch. A mark of 0 says that there are none any more.
    fn mark_earlier(&mut self) {
        for (key, one) in &self.earlier {
            let was_told = self.has_earlier.contains(key);
            if one.number == Some(0) && !was_told {
                continue;
            }
            match one.number {
                Some(0) => self.has_earlier.remove(key),
                _ => self.has_earlier.insert(key.clone()),
            };
            let number = one.number.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            let text = format!("{}: {}", key.0, one.age_ns);
            self.recorder
                .mark(Event::Earlier, Some(&one.device), number, Some(&text));
        }
        self.earlier.retain(|_, one| one.number != Some(0));
    }

    /// The I/Os in flight of all parts that are recorded. If those of a part are not known, a mark says so.
    fn in_flight(&mut self, parts: &mut [Part<'_>]) -> Vec<FinishedIo> {
        self.mark_earlier();
        let mut known = Vec::new();
        for part in parts.iter_mut().filter(|part| !part.is_left) {
            match part.in_flight() {
                Some(ios) => known.extend(ios),
                None => {
                    let owner = part.is_beside.then(|| part.owner.word());
                    self.recorder
                        .mark(Event::InFlightUnknown, None, None, owner);
                }
            }
        }
        known
    }

    fn take(&mut self, part: &Part<'_>, seen: &mut Seen) {
        for io in &mut seen.ios {
            io.layer = part.stored(io.layer);
            self.recorder.add(io);
            self.look(part, io);
        }
        let owner = part.is_beside.then(|| part.owner.word());
        self.recorder.lost(seen.lost, owner);
        self.recorder.unplaced(seen.unplaced.unwrap_or(0));
        // Only disks of the kernel appear and vanish.
        for device in &seen.appeared {
            complain(format_args!(
                "dashpot: {device} has appeared; the recording has it from its first I/O"
            ));
            self.recorder.mark(
                Event::Watched,
                Some(device),
                None,
                Some(part.kind(Layer::Disk)),
            );
        }
        let layer = part.stored(Layer::Disk).word();
        for one in seen.earlier.drain(..) {
            self.earlier.insert((layer, one.device.clone()), one);
        }
        for one in &seen.stacked {
            if self.stacked.insert(one.to_string()) {
                let text = format!("{layer}: {}", one.over.join(", "));
                complain(format_args!("dashpot: not in the sums of reports: {one}"));
                self.recorder
                    .mark(Event::Stacked, Some(&one.device), None, Some(&text));
            }
        }
        for device in &seen.vanished {
            let text = match device.warning() {
                Some(warning) => format!("{layer}: {warning}"),
                None => layer.to_owned(),
            };
            complain(format_args!("dashpot: {} has vanished", device.name));
            if let Some(earlier) = self.earlier.get_mut(&(layer, device.name.to_string())) {
                earlier.number = Some(0);
            }
            let device = Some(&*device.name);
            self.recorder
                .mark(Event::Vanished, device, None, Some(&text));
        }
    }

    /// Fires the trigger, at most once for each file.
    fn look(&mut self, part: &Part<'_>, io: &FinishedIo) {
        let Some(trigger) = self.trigger.as_ref().filter(|_| !self.has_fired) else {
            return;
        };
        if trigger.select(io) {
            self.has_fired = true;
            let text = if part.is_beside {
                format!("{trigger} of the {}", part.owner.word())
            } else {
                trigger.to_string()
            };
            self.recorder.trigger(io, &text);
        }
    }
}

/// A text about the size of the recording so far.
pub(super) fn figures(summary: &Summary) -> String {
    let (ios, bytes) = (thousands(summary.ios), nice_number(summary.bytes));
    format!("{ios} I/Os, {bytes} bytes")
}

/// The last line of output. The kernel loses events, of which an I/O has several; the recorder and a daemon
/// lose whole I/Os.
pub(super) fn text(output: &Path, parts: &[Part<'_>], summary: &Summary) -> String {
    let has_events = parts.iter().any(|part| part.owner == Owner::Kernel);
    let lost = match (summary.lost, has_events) {
        (0, _) => "nothing was lost".to_owned(),
        (lost, true) => format!("{} events or I/Os were lost", thousands(lost)),
        (lost, false) => format!("{} I/Os were lost", thousands(lost)),
    };
    let deleted = match summary.deleted {
        0 => String::new(),
        files => format!("; --keep deleted the I/Os of {} files", thousands(files)),
    };
    let unplaced = match summary.unplaced {
        0 => String::new(),
        calls => format!("; {}", unplaced_calls(calls)),
    };
    let output = output.display();
    format!(
        "{output}: {}; {lost}{unplaced}{deleted}\n",
        figures(summary)
    )
}

/// The size limit of a recording without `--keep`, in bytes.
const KEEP_BYTES: u64 = 2 << 30;
/// If the recorder takes more than this share of one CPU, in percent, it leaves out single I/Os for a minute.
const CPU_PERCENT: u64 = 25;
