//! Man pages and completion scripts, from the definitions of the command line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;

/// Write a man page for every command
#[derive(Args, Debug)]
#[command(
    hide = true,
    after_help = "Example:\n  dashpot man ~/.local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// The directory to write them to
    pub(crate) dir: PathBuf,
}

/// Print a completion script
#[derive(Args, Debug)]
#[command(
    hide = true,
    after_help = "Example:\n  source <(dashpot completions bash)"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Writes `dashpot.1` and a page for every command into a directory that exists.
pub(crate) fn write_man_pages(dir: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), dir)
}

/// Writes the completion script of a shell.
pub(crate) fn write_completions(shell: Shell, out: &mut dyn Write) {
    clap_complete::generate(shell, &mut Cli::command(), "dashpot", &mut { out });
}

#[cfg(test)]
mod tests {
    use super::{write_completions, write_man_pages};
    use clap_complete::Shell;

    #[test]
    fn every_command_has_a_page() {
        let dir = tempfile::tempdir().expect("a directory");
        write_man_pages(dir.path()).expect("pages");
        for page in [
            "dashpot.1",
            "dashpot-inject.1",
            "dashpot-zinject.1",
            "dashpot-run.1",
        ] {
            let text = std::fs::read_to_string(dir.path().join(page)).expect(page);
            assert!(text.contains("Example"), "{page}");
        }
    }

    #[test]
    fn scripts_complete_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            write_completions(shell, &mut script);
            assert!(
                String::from_utf8_lossy(&script).contains("suspend"),
                "{shell}"
            );
        }
    }
}
