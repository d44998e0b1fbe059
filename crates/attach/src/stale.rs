//! Removes the remains of attachments whose daemon was killed, or whose maker was killed while it attached.

use std::fs;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::bail;
use dashpot_api::MechanismWord;
use dashpot_export::complain;
use dashpot_export::store::device_users;
use dashpot_output::print;

use crate::answers::Answers;
use crate::block_device::is_free;
use crate::down::{CLOSING, LOOK_EVERY, free, take_down};
use crate::file_system;
use crate::fuse_mount;
use crate::loop_device::{self, backing_file};
use crate::nbd_device::{self, backend_of};
use crate::place::{LockedDirectory, Record};
use crate::state::{is_ours, is_stale, is_used, waits};
use crate::{sysfs, ublk_device};

/// Cleans up, and prints what it removed.
pub(crate) fn clean() -> anyhow::Result<ExitCode> {
    let mut all_done = true;
    for (name, cleaned) in clean_each(|_, _, _| true) {
        match cleaned {
            Ok(()) => print(&format!("{name}\n"))?,
            Err(error) => {
                complain(format_args!("dashpot: {name}: {error:#}"));
                all_done = false;
            }
        }
    }
    Ok(ExitCode::from(u8::from(!all_done)))
}

/// Cleans up as far as possible, before a new attachment. Leaves alone each device that is in use and that
/// another daemon may still take over.
pub(crate) fn clean_quietly() {
    let goes = |place: &LockedDirectory, record: &Record, answers: &Answers| {
        !(waits(place, record, answers) && is_used(record))
    };
    for (name, cleaned) in clean_each(goes) {
        if let Err(error) = cleaned {
            complain(format_args!(
                "dashpot: left by a daemon that is gone: {name}: {error:#}"
            ));
        }
    }
}

/// Cleans every stale attachment for which `goes` is true. First prints which daemons do not answer. Returns
/// the node of each cleaned attachment, and whether the cleaning succeeded.
fn clean_each(
    goes: impl Fn(&LockedDirectory, &Record, &Answers) -> bool,
) -> Vec<(String, anyhow::Result<()>)> {
    let (mut cleaned, all) = (Vec::new(), LockedDirectory::all());
    let answers = Answers::about(all.iter().filter_map(|(_, record)| record.as_ref()));
    answers.say_silent();
    for (place, record) in all {
        match record {
            None => clean_half_made(place),
            Some(record)
                if is_stale(&place, &record, &answers) && goes(&place, &record, &answers) =>
            {
                let node = record.node.clone();
                cleaned.push((node, clean_one(place, &record)));
            }
            Some(_) => {}
        }
    }
    cleaned
}

fn clean_one(place: LockedDirectory, record: &Record) -> anyhow::Result<()> {
    if is_ours(&place, record) {
        if record.mechanism == MechanismWord::Nbd {
            // Free the node first: otherwise all I/O, including the I/O of unmounting, would wait
            // for another daemon.
            free(record)?;
        }
        file_system::unmount(record, &|| false)?;
        let users = users_after_a_while(&record.node);
        if !users.is_empty() {
            bail!(
                "it was {}, and nothing serves it any more, but it is in use: {}",
                record.words(),
                users.join(", ")
            );
        }
    }
    take_down(place, record)
}

/// The users of a node. A tool of an `attach` that was killed may still have it open for a moment.
fn users_after_a_while(node: &str) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let users = device_users(node);
        if users.is_empty() || begun.elapsed() >= CLOSING {
            return users;
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Cleans up after a process that was killed while it attached, before it wrote the record.
fn clean_half_made(place: LockedDirectory) {
    for node in nodes("nbd") {
        if backend_of(&node).is_some_and(|backend| place.contains(&backend)) {
            let _ = nbd_device::free(&node);
        }
    }
    for node in ublk_device::nodes() {
        if ublk_device::is_of(&node, place.path()) {
            let _ = ublk_device::free(&node);
        }
    }
    for file in place.files() {
        for node in nodes("loop") {
            if backing_file(&node).as_deref() == Some(&file) {
                // If the device cannot be freed now, the next cleaning finds it again.
                let _ = loop_device::free(&node);
            }
        }
        fuse_mount::undo(&file);
    }
    if let Some(changes) = place.changes()
        && is_free(&changes.node, changes.mechanism)
    {
        sysfs::restore(&changes.node, &changes.before);
    }
    place.remove();
}

/// The nodes of all block devices whose names begin with `word`.
fn nodes(word: &str) -> Vec<String> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let meant = names.filter(|name| name.starts_with(word));
    meant.map(|name| format!("/dev/{name}")).collect()
}
