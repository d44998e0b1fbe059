//! The devices, modules and tools that `doctor` finds on this host.

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};

use dashpot_rules::shell_word;

/// Where Debian has tools of root, which the `PATH` of an ordinary user, and of `su`, leaves out.
const TOOLS_OF_ROOT: &str = "/usr/local/sbin:/usr/sbin:/sbin";

/// Where sudo looks for commands on Debian (`secure_path`).
const SUDO_LOOKS_IN: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Whether this user can use a device.
pub(crate) fn opened(device: &str) -> io::Result<()> {
    let opened = OpenOptions::new().read(true).write(true).open(device);
    opened.map(|_| ())
}

/// Whether a program is in the `PATH`, or where the tools of root are.
pub fn installed(program: &str) -> bool {
    path_of(program).is_some()
}

/// The path of a program that is in the `PATH`, or where the tools of root are.
pub fn path_of(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut dirs = std::env::split_paths(&path).chain(std::env::split_paths(TOOLS_OF_ROOT));
    dirs.find_map(|dir| Some(dir.join(program)).filter(|path| path.is_file()))
}

/// The beginning of a command line that runs this program as root. It has the program's path if sudo would not
/// find the program.
pub fn with_sudo() -> String {
    match std::env::current_exe() {
        Ok(program) if !sudo_finds(&program) => {
            format!("sudo {}", shell_word(&program.to_string_lossy()))
        }
        _ => "sudo dashpot".to_owned(),
    }
}

fn sudo_finds(program: &Path) -> bool {
    let mut dirs = std::env::split_paths(SUDO_LOOKS_IN);
    // Follow links: one of them may be the link that `make install` proposes.
    dirs.any(|dir| {
        dir.join("dashpot")
            .canonicalize()
            .is_ok_and(|found| found == program)
    })
}

#[cfg(test)]
mod tests {
    use super::{installed, path_of};

    #[test]
    fn tools_of_root_are_found_whatever_the_path_is() {
        // Each Linux has one of these.
        assert!(["ldconfig", "mkfs.ext4", "init"].into_iter().any(installed));
        assert_eq!(path_of("no-such-tool"), None);
    }
}
