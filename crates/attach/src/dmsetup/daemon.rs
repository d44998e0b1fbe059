//! The daemon of a device, which runs in the background until the device is removed.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::process::Process;

/// Starts the daemon of a new device in the device's directory, and waits until it serves the lab. If the
/// daemon ends instead, returns its last message.
pub(super) fn start(
    home: &Path,
    lab_text: &str,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<Result<Process, String>> {
    let (lab, log) = (home.join("lab.toml"), home.join("log"));
    fs::write(&lab, lab_text).with_context(|| format!("cannot write {}", lab.display()))?;
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let at = |name: &str| format!("unix:{}", home.join(name).display());
    let ready = home.join("ready");
    let program = std::env::current_exe().context("cannot find the program of a daemon")?;
    let mut command = Command::new(program);
    command
        .arg("serve")
        .arg(&lab)
        .args([
            "--nbd",
            &at("nbd.sock"),
            "--api",
            &at("api.sock"),
            "--ready-file",
        ])
        .arg(&ready)
        .env_remove("DASHPOT_API")
        .current_dir("/")
        // Ctrl-C should end this command, but not the daemon.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    let mut child = command.spawn().context("cannot start a daemon")?;
    let process = Process::of(child.id());
    let serves = wait(&mut child, &|| ready.exists(), is_stopped);
    match (serves, process) {
        (Ok(true), Some(process)) => Ok(Ok(process)),
        (serves, _) => {
            let _ = child.kill();
            let _ = child.wait();
            serves?;
            Ok(Err(reason(&fs::read_to_string(&log)?).to_owned()))
        }
    }
}

/// Finds, by its command line, the daemon that serves the lab in a device's directory.
pub(super) fn running(home: &Path) -> Option<Process> {
    let lab = home.join("lab.toml");
    let serves = |process: &Path| {
        let is_roots = fs::metadata(process).is_ok_and(|found| found.uid() == 0);
        let words = fs::read(process.join("cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0).skip(1);
        is_roots
            && words.next() == Some(b"serve")
            && words.next() == Some(lab.as_os_str().as_bytes())
    };
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = all.map(|entry| entry.path()).find(|path| serves(path))?;
    Process::of(found.file_name()?.to_str()?.parse().ok()?)
}

/// Waits until the daemon is ready. Returns false if the daemon has ended.
fn wait(
    child: &mut Child,
    is_ready: &dyn Fn() -> bool,
    is_stopped: &dyn Fn() -> bool,
) -> anyhow::Result<bool> {
    while !is_ready() {
        if is_stopped() {
            bail!("interrupted: nothing is made");
        }
        if child.try_wait()?.is_some() {
            return Ok(false);
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(true)
}

/// Why a daemon did not start: the last line of its log, without the name of the program.
fn reason(log: &str) -> &str {
    let line = log.lines().last().unwrap_or("the daemon did not start");
    line.strip_prefix("dashpot: ").unwrap_or(line)
}

/// Ends a daemon in an orderly way, and waits until it is gone.
pub(super) fn end(daemon: Process) -> anyhow::Result<()> {
    let pid = i32::try_from(daemon.pid()).ok().and_then(Pid::from_raw);
    let Some(pid) = pid.filter(|_| daemon.is_alive()) else {
        return Ok(());
    };
    match kill_process(pid, Signal::TERM) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => {}
        Err(error) => bail!("cannot end its daemon, pid {}: {error}", daemon.pid()),
    }
    while daemon.is_alive() {
        thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// The interval between two checks of a daemon.
const LOOK_EVERY: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn the_reason_is_the_last_line_of_the_log() {
        assert_eq!(reason("a\ndashpot: disk `d`: no\n"), "disk `d`: no");
        assert_eq!(reason(""), "the daemon did not start");
    }
}
