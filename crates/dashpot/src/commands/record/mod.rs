//! `record`: records the I/Os of disks for a time, or until Ctrl-C. `serve --record` and `observe --record`
//! record in the background.

mod background;
mod changes;
mod cut;
mod link;
mod recording;
mod show;

use std::path::Path;

use anyhow::bail;
use dashpot_engine::Duration;
use dashpot_observe::{Layer, Schedule};
use dashpot_rules::{ApiAddress, ParseError};

use super::output::{print, progress_bar, usage};
use crate::cli::RecordArgs;
use crate::sources::Target;

use recording::{Recording, check_keep, check_same, figures, layers, sources, text};

pub(super) use background::Background;
pub(super) use cut::cut;
pub(super) use link::found;
pub(super) use show::show;

/// Records the I/Os of disks.
pub(super) fn record(api: Option<&ApiAddress>, args: &RecordArgs) -> anyhow::Result<()> {
    check(args);
    let Some(output) = &args.output else {
        usage(&ParseError::new(
            "-o REC: name the directory of the recording",
        ));
    };
    let target = Target::find(api, &args.device)?;
    let layers = layers(&target, &args.layers);
    check_same(output, &target)?;
    let mut recording = Recording::create(output, &args.kept, &args.layers)?;
    let schedule = Schedule::once(args.lasts.unwrap_or(Duration::MAX));
    let mut sources = sources(&target, &layers, &schedule)?;
    print(&beginning(args, output, &target, &layers))?;
    let progress = progress_bar();
    let recorded = recording.run(&target, &mut sources, |summary| {
        progress.set_message(figures(summary));
        true
    });
    progress.finish_and_clear();
    let summary = recording.finish(&mut sources);
    print(&text(output, &target, &summary))?;
    match summary.stopped {
        Some(why) => bail!("the recording ended early: {why}"),
        None => recorded,
    }
}

/// Refuses options with which no recording is possible.
fn check(args: &RecordArgs) {
    if args.layers.contains(&Layer::Store) {
        usage(&ParseError::new(
            "--layer store: a store has no I/Os of its own: record '--layer disk', which has the store's \
             part of each",
        ));
    }
    check_keep(&args.kept);
}

/// The line that says that recording has begun.
fn beginning(args: &RecordArgs, output: &Path, target: &Target, layers: &[Layer]) -> String {
    let until = match args.lasts {
        Some(lasts) => format!("for {lasts}"),
        None => "until Ctrl-C".to_owned(),
    };
    let names: Vec<String> = layers
        .iter()
        .flat_map(|layer| target.names(*layer))
        .collect();
    let (output, names) = (output.display(), names.join(", "));
    format!("{output}: recording {names} {until}\n")
}
