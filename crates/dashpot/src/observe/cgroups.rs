//! Which control group a thread is in, asked of the kernel soon after its I/O.

use std::collections::HashMap;
use std::fs;

/// The groups of threads, remembered for an interval, because ids are used again.
#[derive(Default)]
pub(super) struct Cgroups {
    of: HashMap<i32, Option<usize>>,
    names: Vec<String>,
}

impl Cgroups {
    /// The place of a thread's group among the names; none if the thread has ended before.
    pub(super) fn of(&mut self, pid: i32) -> Option<usize> {
        if let Some(known) = self.of.get(&pid) {
            return *known;
        }
        let group = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok();
        let group = group.as_deref().and_then(path).map(|path| self.place(path));
        self.of.insert(pid, group);
        group
    }

    fn place(&mut self, name: &str) -> usize {
        let known = self.names.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        })
    }

    pub(super) fn name(&self, at: usize) -> &str {
        self.names.get(at).map_or("", String::as_str)
    }

    pub(super) fn forget(&mut self) {
        self.of.clear();
        self.names.clear();
    }
}

/// The group in the one hierarchy, or where there are several, in that of block I/O.
fn path(text: &str) -> Option<&str> {
    let lines = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once(':')?;
        rest.split_once(':')
    });
    let mut found = None;
    for (controllers, path) in lines {
        let of_blocks = controllers.split(',').any(|name| name == "blkio");
        if of_blocks {
            return Some(path);
        }
        if controllers.is_empty() {
            found = Some(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn the_group_is_that_of_block_io() {
        assert_eq!(path("0::/user.slice\n"), Some("/user.slice"));
        assert_eq!(path("5:cpu:/a\n4:blkio,x:/b\n0::/c\n"), Some("/b"));
        assert_eq!(path("5:cpu:/a\n0::/c:d\n"), Some("/c:d"));
        assert_eq!(path("5:cpu:/a\n"), None);
    }
}
