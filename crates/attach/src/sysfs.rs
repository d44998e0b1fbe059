//! The attributes of a block device in sysfs. `attach` changes some of them, and `detach` restores their
//! former values.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Settings that `attach` may change, with their former values.
pub(crate) type Before = Vec<(String, String)>;

/// Changes the settings of a node. Before the first change, gives all former values to `note`, so that
/// dashpot can restore them whatever happens later. A change of one setting may change another: a new
/// scheduler changes `nr_requests`.
pub(crate) fn change(
    node: &str,
    settings: &[(&str, &str)],
    note: impl FnOnce(Before) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let present = settings
        .iter()
        .filter_map(|(setting, _)| Some(((*setting).to_owned(), attribute(node, setting)?)));
    note(present.collect())?;
    for (setting, value) in settings {
        if attribute(node, setting).is_some_and(|present| present != *value) {
            set_attribute(node, setting, value)?;
        }
    }
    Ok(())
}

/// Restores the settings of a node. If restoring a setting fails, the next user of the node finds
/// that setting changed.
pub(crate) fn restore(node: &str, before: &[(String, String)]) {
    for (setting, value) in before {
        let _ = set_attribute(node, setting, value);
    }
}

/// An attribute of a node in sysfs.
pub(crate) fn attribute(node: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(sysfs(node).join(name)).ok()?;
    // If there are several values, the chosen value is in brackets.
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    let value = chosen.map_or(text.as_str(), |(chosen, _)| chosen);
    Some(value.trim_end().to_owned())
}

/// The number that the kernel gives each new disk of a node.
pub(crate) fn sequence(node: &str) -> Option<String> {
    attribute(node, "diskseq")
}

/// Changes an attribute of a node in sysfs. Linux 6.17 and later refuse this for a moment while another
/// attribute of the same device is being changed.
fn set_attribute(node: &str, name: &str, value: &str) -> anyhow::Result<()> {
    let (path, begun) = (sysfs(node).join(name), Instant::now());
    loop {
        match fs::write(&path, value) {
            Err(error) if error.kind() == ErrorKind::ResourceBusy && begun.elapsed() < PATIENCE => {
                thread::sleep(PAUSE);
            }
            written => {
                let cannot = || format!("cannot write {value} to {}", path.display());
                return written.with_context(cannot);
            }
        }
    }
}

fn sysfs(node: &str) -> PathBuf {
    let name = Path::new(node).file_name().unwrap_or_default();
    Path::new("/sys/block").join(name)
}

/// The queue of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The kernel's count of I/Os that have not ended.
    pub in_flight: u64,
    /// The maximum number of I/Os in flight.
    pub most: u64,
}

/// The queue of a node, if this host has the node.
pub fn queue_of(node: &str) -> Option<Queue> {
    let counts = attribute(node, "inflight")?;
    let counts = counts.split_whitespace();
    Some(Queue {
        in_flight: counts.filter_map(|count| count.parse::<u64>().ok()).sum(),
        most: attribute(node, "queue/nr_requests")?.parse().ok()?,
    })
}

/// The settings that `attach` gives to a node's queue, because a former user of the node may have changed
/// them: no scheduler changes the order of I/Os, the disk does not rotate, and up to 128 I/Os are in flight.
/// If the former user lowered `nr_requests`, and then set and removed a scheduler, the kernel reports 128 but
/// takes fewer I/Os until `nr_requests` changes. So `attach` sets 127 first.
pub(crate) const QUEUE: [(&str, &str); 4] = [
    ("queue/scheduler", "none"),
    ("queue/rotational", "0"),
    ("queue/nr_requests", "127"),
    ("queue/nr_requests", "128"),
];

/// How long dashpot tries to change an attribute while the kernel is busy with the device.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);
