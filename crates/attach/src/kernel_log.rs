//! The time that is left to take over a device whose daemon is gone. For this time, the kernel's NBD client
//! keeps the device's I/O.
//!
//! The kernel counts this time from the first I/O that finds no connection. Only the kernel's log shows when
//! that I/O came. `kernel.dmesg_restrict` decides which users may read the log.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;

use crate::netlink::RECONNECT_SECONDS;

/// How long the kernel still keeps the I/O of a node whose daemon is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Left {
    /// No I/O has come since the daemon ended, so the time has not begun.
    NotBegun,
    /// The seconds until waiting I/O fails.
    Seconds(u64),
    /// The time is over: I/O fails.
    Over,
    /// This user may not read the kernel's log, or the kernel has overwritten the lines about the device.
    Unknown,
}

impl Left {
    /// The time that is left now for the device at a node.
    pub(crate) fn of(node: &str) -> Left {
        let now = Duration::try_from(clock_gettime(ClockId::Monotonic));
        let name = Path::new(node).file_name().unwrap_or_default();
        let name = name.to_string_lossy();
        left(
            &messages().unwrap_or_default(),
            &name,
            now.unwrap_or_default(),
        )
    }

    /// A sentence about a node that waits for a daemon.
    pub fn sentence(self) -> String {
        match self {
            Left::NotBegun => format!("its next I/O waits for {RECONNECT_SECONDS} s, then fails"),
            Left::Seconds(left) => format!("its I/O fails in {left} s"),
            Left::Over => "its I/O fails".to_owned(),
            Left::Unknown => format!(
                "its I/O fails after it has waited for {RECONNECT_SECONDS} s; root can see how many seconds are left"
            ),
        }
    }

    /// A phrase about a node that another daemon has taken over: how much time was left.
    pub(crate) fn past(self) -> String {
        match self {
            Left::NotBegun => "no I/O had waited".to_owned(),
            Left::Seconds(left) => format!("{left} s were left"),
            Left::Over => "its I/O had begun to fail".to_owned(),
            Left::Unknown => "the kernel's log does not tell how much time was left".to_owned(),
        }
    }
}

/// Reads from the kernel's messages how much time a device has left. The oldest message comes first.
fn left(messages: &[String], name: &str, now: Duration) -> Left {
    let mut left = Left::Unknown;
    for message in messages {
        let Some((at, text)) = of_device(message, name) else {
            continue;
        };
        let waits_for = Duration::from_secs(RECONNECT_SECONDS);
        left = match text {
            text if text.starts_with("Receive control failed") => Left::NotBegun,
            text if text.starts_with("Dead connection") && left == Left::NotBegun => {
                Left::Seconds((at + waits_for).saturating_sub(now).as_secs())
            }
            "shutting down sockets" => Left::Over,
            _ => left,
        };
    }
    left
}

/// The time and the text of a message, if it is about a device: `3,812,7222012,-;block nbd0: …`.
fn of_device<'a>(message: &'a str, name: &str) -> Option<(Duration, &'a str)> {
    let (head, text) = message.split_once(';')?;
    let at = head.split(',').nth(2)?.parse().ok()?;
    let text = text.lines().next()?.strip_prefix("block ")?;
    let text = text.strip_prefix(name)?.strip_prefix(": ")?;
    Some((Duration::from_micros(at), text))
}

/// The messages that the kernel still has. Each read returns one message.
fn messages() -> std::io::Result<Vec<String>> {
    let mut options = OpenOptions::new();
    let nonblocking = OFlags::NONBLOCK.bits().cast_signed();
    let mut log = options.read(true).custom_flags(nonblocking).open(LOG)?;
    let (mut messages, mut buffer) = (Vec::new(), [0; LONGEST]);
    loop {
        match log.read(&mut buffer) {
            Ok(0) => return Ok(messages),
            Ok(length) => messages.push(String::from_utf8_lossy(&buffer[..length]).into_owned()),
            // The kernel has overwritten the next message since the last read.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(messages),
            Err(error) => return Err(error),
        }
    }
}

const LOG: &str = "/dev/kmsg";
/// The size of the longest message that the kernel returns, in bytes.
const LONGEST: usize = 8192;

#[cfg(test)]
mod tests {
    use super::{Left, left};
    use std::time::Duration;

    /// Messages of the kernel's NBD client, as Linux 6.12 writes them.
    const ENDED: &str =
        "3,812,7222012,-;block nbd0: Receive control failed (result -32)\n SUBSYSTEM=block";
    const WAITS: &str = "3,813,10296218,-;block nbd0: Dead connection, failed to find a fallback";
    const OVER: &str = "4,814,31982075,-;block nbd0: shutting down sockets";
    const OTHER: &str = "4,815,31982075,-;block nbd01: shutting down sockets";

    fn at(seconds: u64, messages: &[&str]) -> Left {
        let messages: Vec<String> = messages.iter().map(|&message| message.to_owned()).collect();
        left(&messages, "nbd0", Duration::from_secs(seconds))
    }

    #[test]
    fn the_time_runs_from_the_first_io_without_a_connection() {
        assert_eq!(at(9, &[ENDED]), Left::NotBegun);
        assert_eq!(at(12, &[ENDED, WAITS, OTHER]), Left::Seconds(18));
        let later = WAITS.replace("10296218", "20296218");
        assert_eq!(at(25, &[ENDED, WAITS, &later]), Left::Seconds(5));
        assert_eq!(at(32, &[ENDED, WAITS, OVER]), Left::Over);
        assert_eq!(
            at(40, &[ENDED, WAITS, OVER, ENDED]),
            Left::NotBegun,
            "taken over, then ended"
        );
    }

    #[test]
    fn a_log_without_its_beginning_says_nothing() {
        assert_eq!(at(12, &[]), Left::Unknown);
        assert_eq!(
            at(12, &[WAITS, "no message", ";", "1,2;block nbd0: x"]),
            Left::Unknown
        );
    }
}
