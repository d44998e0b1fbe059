//! `record`: records the I/Os of disks until its time is over, or until Ctrl-C.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use dashpot_engine::Duration;
use dashpot_observe::{Layer, Question, Schedule, Seen, Subject, Wanted};
use dashpot_recording::{Event, MachineClock, Options, Recorder, Summary};
use dashpot_rules::{ApiAddress, ParseError, nice_number, thousands};

use super::output::{print, progress_bar, usage};
use crate::cli::RecordArgs;
use crate::sources::{Source, Target};

/// Records the I/Os of disks.
pub(super) fn record(api: Option<&ApiAddress>, args: &RecordArgs) -> anyhow::Result<()> {
    check(args);
    let Some(output) = &args.output else {
        usage(&ParseError::new(
            "-o REC: name the directory of the recording",
        ));
    };
    let target = Target::find(api, &args.device)?;
    let question = Question::of(Subject::Ios(Wanted::all(args.layer)));
    if let Err(error) = target.check(&question) {
        usage(&error);
    }
    let options = Options {
        keep_bytes: args.keep,
        host: rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned(),
        cpu_percent: CPU_PERCENT,
    };
    let mut recorder = Recorder::create(output, options, Arc::new(MachineClock))?;
    let schedule = Schedule::once(args.lasts.unwrap_or(Duration::MAX));
    let mut source = target.watch(&question, &schedule)?;
    print(&beginning(args, output, &target))?;
    let watched = take_all(&mut *source, &mut recorder);
    let summary = recorder.finish(&source.in_flight());
    print(&text(output, &target, &summary))?;
    match summary.stopped {
        Some(why) => bail!("the recording ended early: {why}"),
        None => watched,
    }
}

/// Refuses what no recording can be.
fn check(args: &RecordArgs) {
    if args.layer == Layer::Store {
        usage(&ParseError::new(
            "--layer store: a store has no I/Os of its own: record '--layer disk', which has the store's \
             part of each",
        ));
    }
    if args.keep < KEEP_LEAST {
        usage(&ParseError::new(format!(
            "--keep: {} bytes are too few for a recording: take at least 1M",
            args.keep
        )));
    }
}

/// Records until the source ends, or the recorder cannot write.
fn take_all(source: &mut dyn Source, recorder: &mut Recorder) -> anyhow::Result<()> {
    let progress = progress_bar();
    while let Some(seen) = source.next()? {
        take(&seen, recorder);
        if recorder.is_due() {
            recorder.seal(&source.in_flight());
        }
        let summary = recorder.summary();
        progress.set_message(figures(&summary));
        if summary.stopped.is_some() {
            break;
        }
    }
    progress.finish_and_clear();
    Ok(())
}

/// The line that says that recording has begun.
fn beginning(args: &RecordArgs, output: &Path, target: &Target) -> String {
    let until = match args.lasts {
        Some(lasts) => format!("for {lasts}"),
        None => "until Ctrl-C".to_owned(),
    };
    let (output, names) = (output.display(), target.names(args.layer).join(", "));
    format!("{output}: recording {names} {until}\n")
}

fn take(seen: &Seen, recorder: &mut Recorder) {
    seen.ios.iter().for_each(|io| recorder.add(io));
    recorder.lost(seen.lost);
    for device in &seen.vanished {
        recorder.mark(Event::Vanished, Some(device), None, None);
    }
}

fn figures(summary: &Summary) -> String {
    let (ios, bytes) = (thousands(summary.ios), nice_number(summary.bytes));
    format!("{ios} I/Os, {bytes} bytes")
}

/// The last line. The kernel loses events, several of which make an I/O, and the recorder and a daemon lose I/Os.
fn text(output: &Path, target: &Target, summary: &Summary) -> String {
    let lost = match (summary.lost, target) {
        (0, _) => "nothing was lost".to_owned(),
        (lost, Target::Kernel(..)) => format!("{} events or I/Os were lost", thousands(lost)),
        (lost, _) => format!("{} I/Os were lost", thousands(lost)),
    };
    let output = output.display();
    format!("{output}: {}; {lost}\n", figures(summary))
}

/// Above this share of one CPU the recorder leaves single I/Os out for a minute.
const CPU_PERCENT: u64 = 25;
/// The least value of `--keep`: less than one file of a busy disk.
const KEEP_LEAST: u64 = 1 << 20;
