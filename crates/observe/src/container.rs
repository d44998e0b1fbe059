//! The container or the systemd unit that a cgroup belongs to, as far as the cgroup's path shows.
//!
//! Docker, Podman, containerd and CRI-O name a cgroup after its container's id, which has 64 hexadecimal
//! digits: `docker-ID.scope` with systemd, `/docker/ID` without systemd. Like the tools of these programs,
//! dashpot shows the first 12 digits. No path contains the name that a user gave the container.

/// The name of the innermost container in a path, or else of the systemd unit, or else the path itself. The
/// returned name is a part of the path.
pub(crate) fn container(path: &str) -> &str {
    let parts = || path.split('/').rev();
    let own = parts().find_map(of_id).or_else(|| parts().find_map(of_lxc));
    let unit = || parts().find(|part| UNITS.iter().any(|kind| part.ends_with(kind)));
    own.or_else(unit).unwrap_or(path)
}

/// Turns `docker-ID.scope` into `docker-0123456789ab`, and a bare id into `0123456789ab`.
fn of_id(part: &str) -> Option<&str> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    let id = name.len().checked_sub(ID)?;
    let (before, digits) = (name.get(..id)?, name.get(id..)?);
    let is_id = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_whole = before.is_empty() || before.ends_with('-');
    // A container's monitor process, such as Podman's `conmon`, is not part of the container.
    (is_id && is_whole && !before.contains("conmon")).then(|| &name[..id + SHOWN])
}

/// Accepts `lxc.payload.NAME`, the name that LXC and Incus give to a container's cgroup.
fn of_lxc(part: &str) -> Option<&str> {
    part.starts_with("lxc.payload.").then_some(part)
}

/// The length of an id.
const ID: usize = 64;
/// How many digits of an id are shown.
const SHOWN: usize = 12;
/// The kinds of units that processes run in.
const UNITS: [&str; 2] = [".scope", ".service"];

#[cfg(test)]
mod tests {
    use super::container;

    #[test]
    fn paths_tell_containers_and_units() {
        let id = "4c01db0b339c".to_owned() + &"0123456789abcdef".repeat(3) + "0123";
        for (path, name) in [
            ("/system.slice/docker-ID.scope", "docker-4c01db0b339c"),
            ("/system.slice/docker-ID.scope/init", "docker-4c01db0b339c"),
            ("/docker/ID", "4c01db0b339c"),
            (
                "/machine.slice/libpod-ID.scope/container",
                "libpod-4c01db0b339c",
            ),
            (
                "/machine.slice/libpod-conmon-ID.scope",
                "libpod-conmon-ID.scope",
            ),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-ID.scope",
                "cri-containerd-4c01db0b339c",
            ),
            ("/kubepods/burstable/pod1-2/ID", "4c01db0b339c"),
            // A container inside another container.
            ("/docker/ID/docker/ID", "4c01db0b339c"),
            (
                "/lxc.payload.web/system.slice/ssh.service",
                "lxc.payload.web",
            ),
            (
                "/user.slice/user-1000.slice/session-3.scope",
                "session-3.scope",
            ),
            (
                "/system.slice/postgresql@15-main.service",
                "postgresql@15-main.service",
            ),
            ("/machine.slice/machine-web.scope", "machine-web.scope"),
            ("/batch", "/batch"),
            ("/", "/"),
            ("", ""),
            ("gone", "gone"),
            ("/docker/ID (inherited)", "/docker/ID (inherited)"),
            (
                "/äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüx",
                "/äöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüäöüx",
            ),
        ] {
            let (path, name) = (path.replace("ID", &id), name.replace("ID", &id));
            assert_eq!(container(&path), name, "{path}");
        }
    }
}
