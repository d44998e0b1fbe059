//! Links to nodes: `/dev/dashpot/DISK` for a disk that `attach` makes a device.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dashpot_rules::segment;

use super::place::{Record, records};

/// The path of a disk's link. A `/` in the name of the disk is `%2F` there.
pub(super) fn of(disk: &str) -> PathBuf {
    Path::new(LINKS).join(segment(disk))
}

/// Refuses a path that is taken, and names the device that has it. `api` is the daemon's address.
/// The link of a device whose daemon is gone counts as free.
pub(super) fn check_free(link: &Path, api: &str) -> anyhow::Result<()> {
    if fs::symlink_metadata(link).is_err() {
        return Ok(());
    }
    let shown = link.display();
    let owners = owners(link);
    if owners.is_empty() {
        bail!("{shown} exists, and is not a link to an attached disk: remove it");
    }
    let Some(Record {
        disk,
        node,
        api: other,
        ..
    }) = owners.into_iter().find(|owner| !is_gone(owner))
    else {
        return Ok(());
    };
    if other == api {
        bail!("disk '{disk}': it is {node} already: dashpot detach {node} frees it");
    }
    bail!(
        "{shown} is {node} already, disk '{disk}' of the daemon at {other}: detach that one, or give this disk another name"
    )
}

/// Makes the link of a new attachment. Takes the link away from a device whose daemon is gone.
pub(super) fn put(link: &Path, node: &str) -> anyhow::Result<()> {
    let owners = owners(link).into_iter();
    owners.filter(is_gone).for_each(|owner| remove(&owner));
    make(link, node)
}

/// The attachments to which a link belongs, or belonged before another attachment took it.
fn owners(link: &Path) -> Vec<Record> {
    let records = records().into_iter().map(|(_, record)| record);
    records
        .filter(|record| record.link.as_deref() == Some(link))
        .collect()
}

fn is_gone(owner: &Record) -> bool {
    owner.daemon.is_some_and(|daemon| !daemon.is_alive())
}

/// Makes a link to a node.
pub(crate) fn make(link: &Path, node: &str) -> anyhow::Result<()> {
    let node = Path::new(node);
    let to = node
        .strip_prefix("/dev")
        .map_or(node.into(), |name| Path::new("..").join(name));
    let folder = link.parent().unwrap_or(link);
    fs::create_dir_all(folder)
        .and_then(|()| symlink(to, link))
        .with_context(|| format!("cannot make {}", link.display()))
}

/// Removes the link of an attachment, unless the link leads elsewhere by now.
pub(super) fn remove(record: &Record) {
    let Some(link) = &record.link else {
        return;
    };
    let name = Path::new(&record.node).file_name();
    if fs::read_link(link).is_ok_and(|to| to.file_name() == name) {
        // If this fails, the next attachment refuses the link and names it.
        let _ = fs::remove_file(link);
    }
}

const LINKS: &str = "/dev/dashpot";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::of;

    #[test]
    fn a_link_is_one_name_in_its_directory() {
        assert_eq!(of("tank/foo"), Path::new("/dev/dashpot/tank%2Ffoo"));
        assert_eq!(of("..a"), Path::new("/dev/dashpot/..a"));
    }
}
