//! `man` and `completions`: man pages and shell completion scripts, made from the definitions of the command
//! line.

use std::path::Path;
use std::{fs, io};

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;
use dashpot_cli::ManArgs;

use crate::command_line::Cli;

/// Writes a man page for each command into a directory.
pub(super) fn man(args: &ManArgs) -> anyhow::Result<()> {
    write_man_pages(&args.dir).with_context(|| {
        let dir = args.dir.display();
        format!("man pages cannot be written to '{dir}': name a directory that you may write to")
    })
}

/// Writes `dashpot.1` and a page for every command into a directory. Makes the directory if it does
/// not exist.
fn write_man_pages(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    write_pages(&with_usage(root), dir)
}

fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    let page = Man::new(command.clone());
    let mut text = Vec::new();
    page.render(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    // Without hyphens, no option and no word of an example is broken in two.
    let text = text.replacen(".SH NAME\n", ".nh\n.ad l\n.SH NAME\n", 1);
    fs::write(dir.join(page.get_filename()), with_lines_kept(&text))?;
    let mut below = command
        .get_subcommands()
        .filter(|below| !below.is_hide_set());
    below.try_for_each(|below| write_pages(below, dir))
}

/// Keeps the line breaks of the notes and examples after the options. Otherwise, man could break a command
/// into two lines, or join it to the next command, and users could not copy it.
fn with_lines_kept(page: &str) -> String {
    let Some((before, after)) = page.split_once(".SH EXTRA\n") else {
        return page.to_owned();
    };
    let (lines, rest) = match after.find(".SH ") {
        Some(at) => after.split_at(at),
        None => (after, ""),
    };
    format!("{before}.SH \"NOTES AND EXAMPLES\"\n.nf\n{lines}.fi\n{rest}")
}

/// Sets the usage line of each command to the line that its help prints. Otherwise the usage line
/// would lack the names of values.
fn with_usage(mut command: Command) -> Command {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").to_owned();
    command.override_usage(usage).mut_subcommands(with_usage)
}

/// The completion script of a shell. This function makes the script in memory, because clap's generator
/// panics if it cannot write, for example into a closed pipe.
pub(super) fn completions(shell: Shell) -> String {
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
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("share/man/man1");
        write_man_pages(&dir).expect("pages");
        for page in [
            "dashpot.1",
            "dashpot-inject.1",
            "dashpot-zinject.1",
            "dashpot-run.1",
        ] {
            let text = std::fs::read_to_string(dir.join(page)).expect(page);
            assert!(text.contains("Example"), "{page}");
            assert!(text.contains("\n.nh\n.ad l\n.SH NAME\n"), "{page}");
        }
        let inject = std::fs::read_to_string(dir.join("dashpot-inject.1")).expect("a page");
        let synopsis = inject.split(".SH SYNOPSIS").nth(1).expect("a synopsis");
        let synopsis = synopsis.split(".SH").next().expect("its text");
        assert!(synopsis.contains("<DISK|all>"), "{synopsis}");
        assert!(!synopsis.contains("\\-D"), "{synopsis}");
        let (_, notes) = inject.split_once(".nf\n").expect("lines as they are");
        let (notes, _) = notes.split_once(".fi\n").expect("their end");
        assert!(notes.contains("\n  dashpot inject c1t1d0"), "{notes}");
    }

    #[test]
    fn scripts_complete_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            assert!(completions(shell).contains("suspend"), "{shell}");
        }
    }
}
