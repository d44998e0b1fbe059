//! A recording that is made in the background, while a report or a daemon runs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use anyhow::{Context, bail};
use dashpot_cli::{BackgroundArgs, KeepArgs};
use dashpot_engine::Duration;
use dashpot_export::{complain, complain_lines};
use dashpot_observe::Schedule;
use dashpot_sources::Target;

use super::link::Link;
use super::part::{Part, layers};
use super::recording::{Recording, check_same, text};

/// A thread that records. Dropping this value ends the recording, and seals its last file.
pub struct Background {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _link: Link,
}

impl Background {
    /// The directory of the recording that the user asks for, and the recording's limits.
    pub fn asked(args: &BackgroundArgs) -> Option<(&Path, &KeepArgs)> {
        let root = args.record.as_deref()?;
        Some((root, &args.kept))
    }

    /// Begins to record the I/Os of the targets that `find` finds, and leaves a link by which reports find
    /// the recording. Returns when the watch has begun.
    pub fn start(
        root: &Path,
        args: &KeepArgs,
        link: PathBuf,
        find: impl FnOnce() -> anyhow::Result<Target> + Send + 'static,
    ) -> anyhow::Result<Background> {
        let recording = Recording::create(root, args).context("--record")?;
        let link = match Link::make(link, root) {
            Ok(link) => link,
            Err(error) => {
                recording.abandon();
                return Err(error);
            }
        };
        let over = Arc::new(AtomicBool::new(false));
        let (root, told) = (root.to_owned(), Arc::clone(&over));
        let (begun, has_begun) = channel();
        let record = move || run(&root, find, recording, &begun, &told);
        let thread = std::thread::Builder::new()
            .name("record".to_owned())
            .spawn(record);
        let background = Background {
            over,
            thread: Some(thread.context("--record: cannot start a thread")?),
            _link: link,
        };
        has_begun
            .recv()
            .context("--record: the thread has ended")??;
        Ok(background)
    }
}

/// Tells the caller whether the watch has begun, and records until the watch is over.
fn run(
    root: &Path,
    find: impl FnOnce() -> anyhow::Result<Target>,
    recording: Recording,
    begun: &Sender<anyhow::Result<()>>,
    over: &AtomicBool,
) {
    // This cannot fail, because the caller waits for the answer.
    let answer = |answer| drop(begun.send(answer));
    let give_up = |recording: Recording, error| {
        recording.abandon();
        answer(Err(error));
    };
    let target = match find() {
        Ok(target) => target,
        Err(error) => return give_up(recording, error),
    };
    if let Err(error) = check_same(root, &BTreeSet::from([target.owner()])) {
        return give_up(recording, error);
    }
    let schedule = Schedule::once(Duration::MAX);
    let part = match Part::here(&target, &layers(&target, &[]), &schedule) {
        Ok(part) => part,
        Err(error) => return give_up(recording, error),
    };
    answer(Ok(()));
    if let Err(error) = record(root, part, recording, over) {
        complain(format_args!(
            "--record: {error:#}; nothing more is recorded"
        ));
    }
}

fn record(
    root: &Path,
    part: Part<'_>,
    mut recording: Recording,
    over: &AtomicBool,
) -> anyhow::Result<()> {
    let mut parts = [part];
    let recorded = recording.run(&mut parts, |_| !over.load(Ordering::Relaxed));
    let summary = recording.finish(&mut parts);
    complain_lines(text(root, &parts, &summary).trim_end());
    match summary.stopped {
        Some(why) => bail!("{why}"),
        None => recorded,
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // If the thread has panicked, it has printed its message, and its sealed files are whole.
            let _ = thread.join();
        }
    }
}
