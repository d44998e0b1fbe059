//! The attributes of a block device in sysfs. `attach` changes some of them, and `detach` restores
//! these.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// The changed settings, with their former values.
pub(super) type Before = Vec<(String, String)>;

/// Changes the settings of a node. Adds each former value to `before` at once, so that the caller can
/// restore it if a later change fails.
pub(super) fn change(
    node: &str,
    settings: &[(&str, &str)],
    before: &mut Before,
) -> anyhow::Result<()> {
    for (setting, value) in settings {
        let former = attribute(node, setting);
        let Some(former) = former.filter(|former| former != value) else {
            continue;
        };
        set_attribute(node, setting, value)?;
        before.push(((*setting).to_owned(), former));
    }
    Ok(())
}

/// Restores the settings of a node. If restoring a setting fails, the next user of the node finds
/// that setting changed.
pub(super) fn restore(node: &str, before: &[(String, String)]) {
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

/// Changes an attribute of a node in sysfs.
fn set_attribute(node: &str, name: &str, value: &str) -> anyhow::Result<()> {
    let path = sysfs(node).join(name);
    fs::write(&path, value).with_context(|| format!("cannot write {value} to {}", path.display()))
}

fn sysfs(node: &str) -> PathBuf {
    let name = Path::new(node).file_name().unwrap_or_default();
    Path::new("/sys/block").join(name)
}

/// The queue of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// How many I/Os have not ended, as the kernel counts.
    pub(crate) in_flight: u64,
    /// The most I/Os that can be in flight.
    pub(crate) most: u64,
}

/// The queue of a node, if this host has that node.
pub(crate) fn queue_of(node: &str) -> Option<Queue> {
    let counts = attribute(node, "inflight")?;
    let counts = counts.split_whitespace();
    Some(Queue {
        in_flight: counts.filter_map(|count| count.parse::<u64>().ok()).sum(),
        most: attribute(node, "queue/nr_requests")?.parse().ok()?,
    })
}
