//! Links to the nodes that `attach` makes: `/dev/dashpot/DISK` for a disk, and `/dev/dashpot/POOL/VOLUME` for
//! a volume, as ZFS has `/dev/zvol/POOL/VOLUME`.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use dashpot_rules::segment;

use crate::place::{Record, records};

/// The path of the link of a disk or a volume. A `/` in the name makes a directory. If a part of the name is
/// empty, `.` or `..`, the path could lead out of `/dev/dashpot`, so each `/` becomes `%2F` instead.
pub(crate) fn of(name: &str) -> PathBuf {
    let leads_elsewhere = |part: &str| matches!(part, "" | "." | "..");
    let mut link = PathBuf::from(LINKS);
    if name.split('/').any(leads_elsewhere) {
        link.push(segment(name));
    } else {
        link.extend(name.split('/').map(segment));
    }
    link
}

/// Refuses a path that is taken, and names the device that has it. `api` is the daemon's address.
/// The link of a device whose daemon is gone counts as free.
pub(crate) fn check_free(link: &Path, api: &str) -> anyhow::Result<()> {
    let owners = owners(link);
    if let Some(owner) = owners.iter().find(|owner| !is_gone(owner)) {
        return refuse(link, owner, api);
    }
    match in_the_way(link) {
        Some(path) if owners.is_empty() => bail!(
            "{} exists, and is not a link to an attached disk: remove it",
            path.display()
        ),
        _ => Ok(()),
    }
}

fn refuse(link: &Path, owner: &Record, api: &str) -> anyhow::Result<()> {
    let (node, words) = (&owner.node, owner.words());
    if owner.link.as_deref() != Some(link) {
        let (shown, theirs) = (link.display(), owner.link.as_deref().unwrap_or(link));
        bail!(
            "{shown} cannot be a link beside {}, which is {words}: detach {node}, or give one of them another name",
            theirs.display()
        );
    }
    if owner.api == api {
        bail!("{words}: it is {node} already: dashpot detach {node} frees it");
    }
    bail!(
        "{} is {node} already, {words} of the daemon at {}: detach that one, or give this one another name",
        link.display(),
        owner.api
    )
}

/// The path of a file that exists where the link, or one of the link's directories, should be.
fn in_the_way(link: &Path) -> Option<&Path> {
    let own = link.ancestors();
    let mut own = own.take_while(|path| *path != Path::new(LINKS));
    own.find(|path| match fs::symlink_metadata(path) {
        Ok(found) => *path == link || !found.is_dir(),
        Err(_) => false,
    })
}

/// Makes the link of a new attachment. Takes the link away from a device whose daemon is gone.
pub(crate) fn put(link: &Path, node: &str) -> anyhow::Result<()> {
    let owners = owners(link).into_iter();
    owners.filter(is_gone).for_each(|owner| remove(&owner));
    make(link, node)
}

/// The attachments that have a link at this path, above it or below it. A path above this link must be a
/// directory, so it cannot be a link, too.
fn owners(link: &Path) -> Vec<Record> {
    let records = records().into_iter().map(|(_, record)| record);
    let is_related = |record: &Record| {
        record.link.as_deref().is_some_and(|theirs| {
            let is_there = fs::symlink_metadata(theirs).is_ok();
            is_there && (theirs.starts_with(link) || link.starts_with(theirs))
        })
    };
    records.filter(is_related).collect()
}

fn is_gone(owner: &Record) -> bool {
    owner.daemon.is_some_and(|daemon| !daemon.is_alive())
}

/// Makes a link to a node.
pub(crate) fn make(link: &Path, node: &str) -> anyhow::Result<()> {
    let folder = link.parent().unwrap_or(link);
    let to = from(folder, Path::new(node));
    let made = || {
        fs::create_dir_all(folder)?;
        symlink(&to, link)
    };
    // Another command may remove an empty directory before this command has put its link there.
    let again = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => made(),
        _ => Err(error),
    };
    let cannot = || format!("cannot make {}", link.display());
    made().or_else(again).with_context(cannot)
}

/// The path from a directory to a node. Within `/dev`, the path is relative.
fn from(folder: &Path, node: &Path) -> PathBuf {
    match (folder.strip_prefix("/dev"), node.strip_prefix("/dev")) {
        (Ok(below), Ok(name)) => below
            .iter()
            .map(|_| Path::new(".."))
            .chain([name])
            .collect(),
        _ => node.into(),
    }
}

/// Removes the link of an attachment, unless the link leads elsewhere by now. In any case, removes those of the
/// link's directories that are empty.
pub(crate) fn remove(record: &Record) {
    let Some(link) = &record.link else {
        return;
    };
    let name = Path::new(&record.node).file_name();
    if fs::read_link(link).is_ok_and(|to| to.file_name() == name) {
        // If this fails, the next attachment that wants this link is refused, and the error names the link.
        let _ = fs::remove_file(link);
    }
    let above = link.ancestors().skip(1);
    let mut below = above.take_while(|path| path.starts_with(LINKS) && *path != Path::new(LINKS));
    // A directory with other links stays, and so do the directories above it.
    let _ = below.try_for_each(fs::remove_dir);
}

const LINKS: &str = "/dev/dashpot";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{from, of};

    #[test]
    fn a_link_is_in_its_directory() {
        assert_eq!(of("d"), Path::new("/dev/dashpot/d"));
        assert_eq!(of("..a"), Path::new("/dev/dashpot/..a"));
        assert_eq!(of("tank/foo"), Path::new("/dev/dashpot/tank/foo"));
        for (elsewhere, link) in [
            ("../a", "/dev/dashpot/..%2Fa"),
            ("a/./b", "/dev/dashpot/a%2F.%2Fb"),
            ("/a", "/dev/dashpot/%2Fa"),
            ("a/", "/dev/dashpot/a%2F"),
        ] {
            assert_eq!(of(elsewhere), Path::new(link));
        }
    }

    #[test]
    fn a_link_leads_to_its_node_by_a_relative_path() {
        let node = Path::new("/dev/loop0");
        for (folder, to) in [
            ("/dev/dashpot", "../loop0"),
            ("/dev/dashpot/tank", "../../loop0"),
            ("/tmp", "/dev/loop0"),
        ] {
            assert_eq!(from(Path::new(folder), node), Path::new(to));
        }
    }
}
