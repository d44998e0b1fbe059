//! The options of `man`, `completions` and `install`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Write a man page for every command
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot man ~/.local/share/man/man1")]
pub struct ManArgs {
    /// The directory to write the man pages to
    pub dir: PathBuf,
}

/// Print a completion script
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  source <(dashpot completions bash)")]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Copy this program into a directory
#[derive(Args, Debug)]
#[command(after_help = "\
An image without a shell has no 'cp'. There, an init container runs 'install' to
copy dashpot into a volume that another container mounts.

Example:
  dashpot install /tools")]
pub struct InstallArgs {
    /// The directory; dashpot makes it if it does not exist
    pub dir: PathBuf,
}
