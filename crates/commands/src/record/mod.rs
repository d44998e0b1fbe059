//! `record`: records the I/Os of the kernel's disks, of a daemon's disks, or of both, for a time or until
//! Ctrl-C. `serve --record` and `observe --record` record in the background.

mod apart;
mod background;
mod changes;
mod cut;
mod link;
mod part;
mod recording;
mod show;
mod targets;
mod watching;

use std::path::Path;

use anyhow::bail;
use dashpot_cli::RecordArgs;
use dashpot_engine::Duration;
use dashpot_observe::{Layer, Schedule};
use dashpot_output::{print, progress_bar, usage};
use dashpot_rules::{ApiAddress, ParseError, short_time};

use part::Part;
use recording::{Recording, check_same, figures, text};
use targets::Targets;

pub use background::Background;
pub use cut::cut;
pub use link::found;
pub use show::show;

/// Records the I/Os of disks.
pub fn record(api: Option<&ApiAddress>, args: &RecordArgs) -> anyhow::Result<()> {
    check(args);
    let Some(output) = &args.output else {
        usage(&ParseError::new(
            "-o REC: name the directory of the recording",
        ));
    };
    let mut targets = Targets::find(api, args)?;
    check_same(output, &targets.owners())?;
    targets.check(&args.layers);
    let mut recording = Recording::create(output, &args.kept)?;
    let schedule = Schedule::once(args.lasts.unwrap_or(Duration::MAX));
    let mut parts = match targets.watch(&args.layers, &schedule) {
        Ok(parts) => parts,
        Err(error) => {
            recording.abandon();
            return Err(error);
        }
    };
    print(&beginning(args, output, &parts))?;
    let progress = progress_bar();
    let recorded = recording.run(&mut parts, |summary| {
        progress.set_message(figures(summary));
        true
    });
    progress.finish_and_clear();
    let summary = recording.finish(&mut parts);
    print(&text(output, &parts, &summary))?;
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
}

/// The line that says that recording has begun.
fn beginning(args: &RecordArgs, output: &Path, parts: &[Part<'_>]) -> String {
    let until = match args.lasts {
        Some(lasts) => format!("for {lasts}"),
        None => "until Ctrl-C".to_owned(),
    };
    let each = parts.iter().map(|part| {
        if part.is_beside {
            format!("{} of the {}", part.names().join(", "), part.owner.word())
        } else {
            part.names().join(", ")
        }
    });
    let names: Vec<String> = each.collect();
    let clocks = match parts.iter().map(|part| part.off_ns).max() {
        _ if parts.len() < 2 => String::new(),
        Some(off_ns @ 1..) => format!(", whose times may be off by {},", short_time(off_ns)),
        _ => " on one clock".to_owned(),
    };
    let (output, names) = (output.display(), names.join(" and "));
    format!("{output}: recording {names}{clocks} {until}\n")
}
