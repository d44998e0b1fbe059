//! Man pages and completion scripts, from the definitions of the command line.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;

use super::Cli;

/// Write a man page for every command
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  dashpot man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The directory to write them to
    pub(crate) dir: PathBuf,
}

/// Print a completion script
#[derive(Args, Debug)]
#[command(after_help = "Example:\n  source <(dashpot completions bash)")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

/// Writes `dashpot.1` and a page for every command into a directory that exists.
pub(crate) fn write_man_pages(dir: &Path) -> io::Result<()> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    clap_mangen::generate_to(with_usage(root), dir)
}

/// Fixes the usage of each command as its help shows it: the one that a page would get otherwise
/// has no names of values.
fn with_usage(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    command.override_usage(usage).mut_subcommands(with_usage)
}

/// The completion script of a shell. It is made in memory, because what makes it panics where it
/// cannot write, such as into a pipe that nobody reads any more.
pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "dashpot", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{completions, write_man_pages};
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
        let inject = std::fs::read_to_string(dir.path().join("dashpot-inject.1")).expect("a page");
        let synopsis = inject.split(".SH SYNOPSIS").nth(1).expect("a synopsis");
        let synopsis = synopsis.split(".SH").next().expect("its text");
        assert!(synopsis.contains("<DISK>"), "{synopsis}");
        assert!(!synopsis.contains("\\-D"), "{synopsis}");
    }

    #[test]
    fn scripts_complete_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(completions(shell).contains("suspend"), "{shell}");
        }
    }
}
