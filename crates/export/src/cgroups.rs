//! The control groups (version 1 or 2) of this process, and the figures in their files.
//!
//! A process in a container does not see the groups above the container's own. This module ignores those
//! higher groups.

use std::fs;
use std::path::{Path, PathBuf};

/// A control group.
pub(crate) struct Group {
    directory: PathBuf,
    version: Version,
}

/// A version of control groups. The two versions differ in the names and the layout of their files.
#[derive(Clone, Copy)]
pub(crate) enum Version {
    One,
    Two,
}

/// The control groups of this process for a controller, with all their ancestors.
pub(crate) fn own(controller: &str) -> Vec<Group> {
    below(Path::new("/proc"), Path::new("/sys/fs/cgroup"), controller)
}

/// Like [`own`], but with the given paths for `/proc` and for the root of the group hierarchy.
pub(crate) fn below(proc: &Path, root: &Path, controller: &str) -> Vec<Group> {
    let lines = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let lines = lines.lines();
    lines
        .flat_map(|line| of_line(line, root, controller))
        .collect()
}

/// The group that a line `ID:CONTROLLERS:PATH` of `/proc/self/cgroup` names, with all its ancestors. Empty if
/// the line is about other controllers.
fn of_line(line: &str, root: &Path, controller: &str) -> Vec<Group> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
        return Vec::new();
    };
    let (root, version) = if controllers.is_empty() {
        (root.to_path_buf(), Version::Two)
    } else if controllers.split(',').any(|name| name == controller) {
        (root.join(controller), Version::One)
    } else {
        return Vec::new();
    };
    let paths = Path::new(path.trim_start_matches('/')).ancestors();
    let group = |path: &Path| Group {
        directory: root.join(path),
        version,
    };
    paths.map(group).collect()
}

impl Group {
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The text of one of the group's files.
    pub(crate) fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.directory.join(file)).ok()
    }

    /// The number in one of the group's files. `None` if the file says `max` or -1.
    pub(crate) fn number(&self, file: &str) -> Option<u64> {
        self.read(file)?.trim().parse().ok()
    }
}

/// The number after the word `name`, in the line of `text` that begins with this word.
pub(crate) fn field(text: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().map(str::split_ascii_whitespace);
    let mut line = lines.find(|line| line.clone().next() == Some(name))?;
    line.nth(1)?.parse().ok()
}
