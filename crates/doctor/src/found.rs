//! The devices, modules and tools that `doctor` finds on this host.

use std::fs::OpenOptions;
use std::io;

/// Whether this user can use a device.
pub(crate) fn opened(device: &str) -> io::Result<()> {
    let opened = OpenOptions::new().read(true).write(true).open(device);
    opened.map(|_| ())
}

/// Whether a program is in the `PATH`.
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}
