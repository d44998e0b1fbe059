//! Runs the programs that `attach` needs, such as mount and losetup. A rule may hold the I/O of such a
//! program.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use dashpot_doctor::{path_of, with_sudo};

/// Refuses a command of a user who is not root, before the command looks for anything else.
pub(crate) fn check_root(command: &str) -> anyhow::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let without = match command {
        "attach" | "mount" => "; programs that speak NBD need no block device, and no root",
        _ => "",
    };
    bail!("{command} needs root: {} {command} …{without}", with_sudo())
}

/// A program of the host, also if the `PATH` leaves out the tools of root.
pub(crate) fn program(name: &str) -> Command {
    Command::new(path_of(name).unwrap_or_else(|| name.into()))
}

/// The name of a program without its directory.
fn name_of(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str());
    name.to_string_lossy().into_owned()
}

/// Runs a program. If the program fails, the error has the program's own message.
pub(crate) fn run(command: &mut Command, gives_up: impl FnMut() -> bool) -> anyhow::Result<String> {
    let program = name_of(command);
    let done = output(command, gives_up)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    // Some programs print all of their options after the error; leave these lines out.
    let lines: Vec<&str> = said
        .lines()
        .take_while(|line| !line.starts_with("Usage:"))
        .collect();
    match lines.join("; ").trim() {
        "" => bail!("{program}: {}", done.status),
        // Some programs begin each line with their name.
        said if said.starts_with(&format!("{program}: ")) => bail!("{said}"),
        said => bail!("{program}: {said}"),
    }
}

/// Runs a program with little output. Keeps calling `gives_up` while the program runs. Once `gives_up`
/// returns true, kills the program and does not wait for it: a rule may hold the program's I/O, and then the
/// program ends only after the device is removed.
pub(crate) fn output(
    command: &mut Command,
    mut gives_up: impl FnMut() -> bool,
) -> anyhow::Result<Output> {
    let program = name_of(command);
    let cannot = || format!("{program} cannot be run");
    let streams = command.stdin(Stdio::null()).stdout(Stdio::piped());
    // The program has a process group of its own. So Ctrl-C ends only dashpot, which then ends the
    // program, or undoes what the program has done.
    let child = streams.stderr(Stdio::piped()).process_group(0).spawn();
    let mut child = child.with_context(cannot)?;
    while child.try_wait().with_context(cannot)?.is_none() {
        if gives_up() {
            // The program may have ended in the meantime.
            let _ = child.kill();
            bail!("interrupted");
        }
        thread::sleep(LOOK_EVERY);
    }
    child.wait_with_output().with_context(cannot)
}

/// The interval between two checks of a program.
const LOOK_EVERY: Duration = Duration::from_millis(2);
