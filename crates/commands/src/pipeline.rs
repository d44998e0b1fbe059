//! `--report`: the files that CI pipelines read, and the commands for GitHub's runner.

use std::env::{var, var_os};
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, bail};
use dashpot_api::{Client, DiskLatency};
use dashpot_export::complain;
use dashpot_sys::Trusted;
use dashpot_text::rule;

use crate::checks::{Outcome, Ran, Report, effect};

/// Makes the directory of the report. Callers do this before they run the command, so that a wrong directory
/// does not cost them a long run.
pub(crate) fn make_directory(directory: Option<&Path>) -> anyhow::Result<()> {
    let Some(directory) = directory else {
        return Ok(());
    };
    let made = fs::create_dir_all(directory).and_then(|()| fs::metadata(directory));
    let owner = made.with_context(|| cannot(directory))?.uid();
    match Trusted::stranger(directory, owner) {
        Some(uid) => bail!(
            "--report {}: another user than you can have made it, or a directory above it (user {uid} owns it): \
             name another",
            directory.display()
        ),
        None => Ok(()),
    }
}

/// Runs a command, and notes how it ended.
pub(crate) async fn ran(
    command: &[OsString],
    ends: impl Future<Output = anyhow::Result<u8>>,
) -> anyhow::Result<Ran> {
    let began = Instant::now();
    let status = ends.await?;
    let words = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    Ok(Ran {
        command: words.collect(),
        status: Some(status),
        lasted: Some(began.elapsed()),
    })
}

/// Writes the report of a command and its checks, if the user wants a report.
pub(crate) fn report(
    client: &Client,
    directory: Option<&Path>,
    ran: &Ran,
    outcomes: &[Outcome],
) -> anyhow::Result<()> {
    let Some(directory) = directory else {
        return Ok(());
    };
    let look = |disk: String| Ok((disk.clone(), client.latency(&disk, None)?));
    let disks: anyhow::Result<Vec<(String, DiskLatency)>> =
        client.disk_names()?.into_iter().map(look).collect();
    let rules = (client.rules_and_cleared()?, client.rules_forgotten()?);
    let report = Report::new(ran, outcomes, rules, &disks?)?;
    write(directory, &report).with_context(|| cannot(directory))?;
    tell_github(&report)
}

/// Says on stderr what each rule did, in a line each. Writes the rules to a file, too, if the caller wants one.
pub(crate) fn tell_rules(client: &Client, file: Option<&Path>) -> anyhow::Result<()> {
    let rules = client.rules_and_cleared()?;
    if let Some(file) = file {
        let refused = || format!("--outcomes {}: cannot be written", file.display());
        fs::write(file, serde_json::to_vec(&rules)?).with_context(refused)?;
    }
    let lines = rules.iter().map(effect);
    lines
        .take(RULES_TOLD)
        .for_each(|line| complain(format_args!("dashpot: {line}")));
    let forgotten = client.rules_forgotten()?;
    if forgotten > 0 {
        complain(format_args!("dashpot: {}", rule::forgotten(forgotten)));
    }
    if rules.len() > RULES_TOLD {
        let more = rules.len() - RULES_TOLD;
        complain(format_args!(
            "dashpot: {more} more rules: --report DIR has them all"
        ));
    }
    Ok(())
}

/// How many rules `run` tells of.
const RULES_TOLD: usize = 20;

fn write(directory: &Path, report: &Report) -> anyhow::Result<()> {
    fs::write(
        directory.join("summary.json"),
        serde_json::to_vec_pretty(report)?,
    )?;
    fs::write(directory.join("junit.xml"), report.junit())?;
    fs::write(directory.join("report.md"), report.markdown())?;
    Ok(())
}

/// Appends the report in Markdown to GitHub's summary of the step, and prints an annotation for each failure.
fn tell_github(report: &Report) -> anyhow::Result<()> {
    if let Some(summary) = var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()) {
        let file = OpenOptions::new().append(true).create(true).open(&summary);
        let cannot = || {
            format!(
                "GITHUB_STEP_SUMMARY={}: cannot be written; unset it",
                summary.display()
            )
        };
        let written = file.and_then(|mut file| file.write_all(report.markdown().as_bytes()));
        written.with_context(cannot)?;
    }
    if var("GITHUB_ACTIONS").is_ok_and(|value| value == "true") {
        for line in report.annotations() {
            complain(format_args!("{line}"));
        }
    }
    Ok(())
}

fn cannot(directory: &Path) -> String {
    let directory = directory.display();
    format!("--report {directory}: cannot be written: name a directory that you may write to")
}
