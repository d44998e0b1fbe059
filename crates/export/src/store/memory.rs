//! How much memory this process may still use. This is the memory that the kernel has available, but no more
//! than any control group (version 1 or 2) of the process has left.

use std::fs;
use std::path::Path;

use super::error::StoreError;
use crate::cgroups::{self, Group, Version, field};

/// The files in which control groups of one version keep their figures.
struct Files {
    limit: &'static str,
    usage: &'static str,
    /// The name of the line in `memory.stat` for the page cache that the kernel frees first. The usage
    /// includes this cache.
    cache: &'static str,
}

const VERSION_1: Files = Files {
    limit: "memory.limit_in_bytes",
    usage: "memory.usage_in_bytes",
    cache: "total_inactive_file",
};

const VERSION_2: Files = Files {
    limit: "memory.max",
    usage: "memory.current",
    cache: "inactive_file",
};

/// How many bytes of memory this process may still use. `None` if the system does not say.
pub fn available_memory() -> Option<u64> {
    available(Path::new("/proc"), &cgroups::own(CONTROLLER))
}

/// Refuses RAM disks of `total` bytes if only `available` bytes are left.
pub(super) fn check_ram(total: u64, available: u64) -> Result<(), StoreError> {
    if total > available {
        return Err(StoreError::Memory { total, available });
    }
    Ok(())
}

fn available(proc: &Path, groups: &[Group]) -> Option<u64> {
    let meminfo = fs::read_to_string(proc.join("meminfo")).unwrap_or_default();
    let system = field(&meminfo, "MemAvailable:").map(|kib| kib << 10);
    groups.iter().filter_map(left_by).chain(system).min()
}

/// How much memory a group has left for this process.
fn left_by(group: &Group) -> Option<u64> {
    let files = match group.version() {
        Version::One => VERSION_1,
        Version::Two => VERSION_2,
    };
    let (limit, usage) = (group.number(files.limit)?, group.number(files.usage)?);
    let cache = field(&group.read("memory.stat")?, files.cache).unwrap_or(0);
    Some(limit.saturating_sub(usage.saturating_sub(cache)))
}

/// The name of the controller that limits the memory of control groups.
const CONTROLLER: &str = "memory";

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{CONTROLLER, available, available_memory, check_ram};
    use crate::cgroups::below;

    fn write(path: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = path.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn of(files: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), files);
        let (proc, cgroup) = (root.path().join("proc"), root.path().join("cgroup"));
        available(&proc, &below(&proc, &cgroup, CONTROLLER))
    }

    const MEMINFO: (&str, &str) = ("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   4000 kB\n");

    #[test]
    fn this_machine_has_memory() {
        assert!(available_memory().unwrap() > 1 << 20);
    }

    #[test]
    fn without_limits_it_is_what_the_system_has() {
        let unlimited = ("cgroup/a/memory.max", "max\n");
        assert_eq!(
            of(&[MEMINFO, ("proc/self/cgroup", "0::/a\n"), unlimited]),
            Some(4_096_000)
        );
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn the_tightest_group_above_the_process_counts() {
        let left = of(&[
            MEMINFO,
            ("proc/self/cgroup", "1:cpu:/x\n0::/a/b/c\n"),
            ("cgroup/a/memory.max", "5000"),
            ("cgroup/a/memory.current", "3000"),
            (
                "cgroup/a/memory.stat",
                "anon 1\nfile 9\ninactive_file 500\n",
            ),
            ("cgroup/a/b/memory.max", "9000"),
            ("cgroup/a/b/memory.current", "0"),
            ("cgroup/a/b/memory.stat", ""),
        ]);
        assert_eq!(left, Some(2500));
    }

    #[test]
    fn version_1_and_a_container_that_sees_only_its_own_group() {
        let left = of(&[
            MEMINFO,
            ("proc/self/cgroup", "4:cpu,memory:/docker/0123\n"),
            ("cgroup/memory/memory.limit_in_bytes", "7000"),
            ("cgroup/memory/memory.usage_in_bytes", "6000"),
            (
                "cgroup/memory/memory.stat",
                "inactive_file 1\ntotal_inactive_file 100\n",
            ),
        ]);
        assert_eq!(left, Some(1100));
    }

    #[test]
    fn ram_disks_that_do_not_fit_are_refused() {
        assert!(check_ram(4096, 4096).is_ok());
        let error = check_ram(3 << 30, 2 << 30).unwrap_err().to_string();
        assert!(
            error.contains("3G in all") && error.contains("may use 2G"),
            "{error}"
        );
    }
}
