//! A recording that is being made: a recorder writes the I/Os that sources return.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use dashpot_observe::{FinishedIo, Layer, Predicates, Question, Schedule, Seen, Subject, Wanted};
use dashpot_recording::{Event, MachineClock, Mark, Options, Recorder, Summary};
use dashpot_rules::{ParseError, nice_number, thousands};

use super::changes::Changes;
use crate::cli::{KeepArgs, each_once};
use crate::commands::output::usage;
use crate::sources::{KERNEL_DISK, KERNEL_FS, Source, Target, run_first};

/// Refuses limits that no recording can keep.
pub(super) fn check_keep(args: &KeepArgs) {
    if let Some(keep) = args.keep.filter(|keep| *keep < KEEP_LEAST) {
        usage(&ParseError::new(format!(
            "--keep: {keep} bytes are too few for a recording: take at least 1M"
        )));
    }
}

/// Refuses to continue a recording of another kind, or a part that was cut from a recording.
pub(super) fn check_same(root: &Path, target: &Target) -> anyhow::Result<()> {
    // If the directory is not a recording or cannot be read, the recorder will refuse it.
    let known = dashpot_recording::Recording::open(root);
    let Ok(marks) = known.and_then(|known| known.marks(&mut Vec::new())) else {
        return Ok(());
    };
    let is_kernels = matches!(target, Target::Kernel(..));
    let is_other = |mark: &Mark| {
        let kind = mark.text.as_deref();
        let is_kernel = |kind| [KERNEL_DISK, KERNEL_FS].contains(&kind);
        mark.event == Event::Watched && kind.is_some_and(is_kernel) != is_kernels
    };
    let why = match marks.iter().any(is_other) {
        true if is_kernels => "has a daemon's disks, and not the kernel's",
        true => "has the kernel's disks, and not a daemon's",
        false if marks.iter().any(|mark| mark.event == Event::Cut) => {
            "is a part of another recording"
        }
        false => return Ok(()),
    };
    bail!("'{}' {why}: record in another directory", root.display())
}

/// The layers to record: the layers that the user asks for, or all layers of the target.
pub(super) fn layers(target: &Target, asked: &[Layer]) -> Vec<Layer> {
    match (asked, target) {
        ([_, ..], _) => each_once(asked),
        ([], Target::Daemon { .. }) => {
            let mut layers = vec![Layer::Disk, Layer::Volume];
            layers.retain(|layer| !target.names(*layer).is_empty());
            layers
        }
        ([], _) => vec![Layer::Disk],
    }
}

/// Begins to watch these layers of a target, I/O by I/O.
pub(super) fn sources<'a>(
    target: &'a Target,
    layers: &[Layer],
    schedule: &Schedule,
) -> anyhow::Result<Vec<Box<dyn Source + 'a>>> {
    let questions = layers
        .iter()
        .map(|layer| Question::of(Subject::Ios(Wanted::all(*layer))));
    let watch = |question: Question| {
        if let Err(error) = target.check(&question) {
            usage(&error);
        }
        target.watch(&question, schedule)
    };
    questions.map(watch).collect()
}

/// A recorder, and the user's trigger.
pub(super) struct Recording {
    recorder: Recorder,
    trigger: Option<Predicates>,
    /// The layers that the user asks for.
    layers: Vec<Layer>,
    /// Whether the trigger has fired since the last file was sealed.
    has_fired: bool,
}

impl Recording {
    /// Begins to record in this directory.
    pub(super) fn create(
        root: &Path,
        args: &KeepArgs,
        layers: &[Layer],
    ) -> anyhow::Result<Recording> {
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
            layers: layers.to_vec(),
            has_fired: false,
        })
    }

    /// Records until the sources end, the recorder cannot write, or the caller stops the recording. A
    /// recording that is stopped reads the sources once more, because I/Os may have ended after the last
    /// reading.
    pub(super) fn run(
        &mut self,
        target: &Target,
        sources: &mut [Box<dyn Source + '_>],
        mut goes_on: impl FnMut(&Summary) -> bool,
    ) -> anyhow::Result<()> {
        if matches!(target, Target::Kernel(..)) {
            run_first();
        }
        self.mark_watched(target);
        // Seal a file without I/Os, so that readers know the devices from now on.
        self.recorder.seal(&[]);
        let mut changes = Changes::of(target);
        loop {
            let is_over = !goes_on(&self.recorder.summary());
            let mut has_ended = true;
            for source in &mut *sources {
                if let Some(seen) = source.next()? {
                    has_ended = false;
                    self.take(&seen);
                }
            }
            for change in changes.news() {
                let (device, text) = (Some(&*change.device), Some(&*change.text));
                self.recorder.mark(change.event, device, None, text);
            }
            if self.recorder.is_due() {
                self.recorder.seal(&in_flight(sources));
                self.has_fired = false;
            }
            let is_behind = sources.iter().any(|source| source.is_behind());
            let has_stopped = self.recorder.summary().stopped.is_some();
            if has_ended || has_stopped || (is_over && !is_behind) {
                return Ok(());
            }
        }
    }

    /// Marks the devices, so that readers also know the devices that had no I/O.
    fn mark_watched(&mut self, target: &Target) {
        for layer in layers(target, &self.layers) {
            let kind = match target {
                Target::Kernel(..) if layer == Layer::Fs => KERNEL_FS,
                Target::Kernel(..) => KERNEL_DISK,
                Target::Daemon { .. } | Target::Pools { .. } => layer.word(),
            };
            for device in target.names(layer) {
                self.recorder
                    .mark(Event::Watched, Some(&device), None, Some(kind));
            }
        }
    }

    /// Seals the last file.
    pub(super) fn finish(self, sources: &mut [Box<dyn Source + '_>]) -> Summary {
        self.recorder.finish(&in_flight(sources))
    }

    fn take(&mut self, seen: &Seen) {
        for io in &seen.ios {
            self.recorder.add(io);
            self.look(io);
        }
        self.recorder.lost(seen.lost);
        for device in &seen.vanished {
            self.recorder
                .mark(Event::Vanished, Some(&device.name), None, device.warning());
        }
    }

    /// Fires the trigger, at most once for each file.
    fn look(&mut self, io: &FinishedIo) {
        let Some(trigger) = self.trigger.as_ref().filter(|_| !self.has_fired) else {
            return;
        };
        if trigger.select(io) {
            self.has_fired = true;
            let took_ns = i64::try_from(io.total_ns()).ok();
            let text = trigger.to_string();
            self.recorder
                .mark(Event::Trigger, Some(&io.device), took_ns, Some(&text));
        }
    }
}

fn in_flight(sources: &mut [Box<dyn Source + '_>]) -> Vec<FinishedIo> {
    let each = sources.iter_mut().map(|source| source.in_flight());
    each.flatten().collect()
}

/// A text about the size of the recording so far.
pub(super) fn figures(summary: &Summary) -> String {
    let (ios, bytes) = (thousands(summary.ios), nice_number(summary.bytes));
    format!("{ios} I/Os, {bytes} bytes")
}

/// The last line of output. The kernel loses events, and an I/O has several of them; the recorder and a
/// daemon lose whole I/Os.
pub(super) fn text(output: &Path, target: &Target, summary: &Summary) -> String {
    let lost = match (summary.lost, target) {
        (0, _) => "nothing was lost".to_owned(),
        (lost, Target::Kernel(..)) => format!("{} events or I/Os were lost", thousands(lost)),
        (lost, _) => format!("{} I/Os were lost", thousands(lost)),
    };
    let deleted = match summary.deleted {
        0 => String::new(),
        files => format!("; --keep deleted the I/Os of {} files", thousands(files)),
    };
    let output = output.display();
    format!("{output}: {}; {lost}{deleted}\n", figures(summary))
}

/// The smallest value of `--keep`. Even one file of a busy disk is larger.
const KEEP_LEAST: u64 = 1 << 20;
/// The size limit of a recording without `--keep`, in bytes.
const KEEP_BYTES: u64 = 2 << 30;
/// If the recorder takes more than this share of one CPU, it does not record I/Os one by one for a minute.
const CPU_PERCENT: u64 = 25;
