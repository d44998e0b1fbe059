//! The commands of `/dev/ublk-control`, which make and remove devices.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use io_uring::squeue::Entry128;
use io_uring::{IoUring, cqueue, opcode, types};
use rustix::io::Errno;
use rustix::ioctl::{Direction, opcode as ioctl};
use zerocopy::IntoBytes;

use super::layout::{ControlCommand, DeviceInfo, Geometry, Params};
use crate::bell_ring::is_transient;

/// The device that takes the commands. Only root may open it.
pub const CONTROL: &str = "/dev/ublk-control";

/// The open device [`CONTROL`], and a ring that gives it commands.
pub struct Control {
    device: File,
    ring: IoUring<Entry128, cqueue::Entry>,
    /// The bytes that a command reads or fills. These bytes stay at the same address.
    bytes: Box<[u8; BYTES]>,
    /// How many commands have been given to the kernel. This number also identifies the last command.
    given: u64,
}

impl Control {
    /// Opens [`CONTROL`].
    ///
    /// # Errors
    /// Fails if the driver is not loaded, if the caller may not open the device, or if the kernel refuses a
    /// ring of io_uring (see [`why_no_ring`](crate::why_no_ring)).
    pub fn open() -> io::Result<Control> {
        let device = OpenOptions::new().read(true).write(true).open(CONTROL)?;
        Ok(Control {
            device,
            ring: IoUring::builder().build(2)?,
            bytes: Box::new([0; BYTES]),
            given: 0,
        })
    }

    /// Whether the driver can do everything that this module needs, as the driver of Linux 6.9 and later can.
    pub fn is_sufficient(&mut self) -> bool {
        let release = rustix::system::uname();
        let is_new = is_at_least(&release.release().to_string_lossy(), DELETES_AT_ONCE);
        let asked = self.run(GET_FEATURES, ANY, &[0; 8]);
        is_new && asked.is_ok() && u64::from_ne_bytes(self.filled()) & FLAGS == FLAGS
    }

    /// Makes a device with one queue that no process serves yet. The driver keeps `mark` with the device, and
    /// chooses the device's number.
    pub fn add(&mut self, depth: u16, longest_io: u32, mark: u64) -> io::Result<DeviceInfo> {
        let wanted = DeviceInfo {
            queues: 1,
            depth,
            longest_io,
            number: ANY,
            flags: FLAGS,
            mark,
            ..DeviceInfo::default()
        };
        self.run(ADD, ANY, wanted.as_bytes())?;
        Ok(zerocopy::transmute!(self.filled::<INFO>()))
    }

    /// The facts about a device.
    pub fn info(&mut self, number: u32) -> io::Result<DeviceInfo> {
        self.run(GET_INFO, number, &[0; INFO])?;
        Ok(zerocopy::transmute!(self.filled::<INFO>()))
    }

    /// Tells the driver the geometry of a new device.
    pub fn set_geometry(&mut self, number: u32, geometry: &Geometry) -> io::Result<()> {
        self.run(SET_PARAMS, number, Params::of(geometry).as_bytes())
    }

    /// Makes the block device. The process with the number `server` must already serve the queue: the kernel
    /// may first read the partition table, and the server must answer these reads. While this method waits,
    /// it calls `waits` again and again.
    pub fn start(&mut self, number: u32, server: u32, mut waits: impl FnMut()) -> io::Result<()> {
        self.give(START, number, 0, server.into())?;
        let pause = types::Timespec::from(PAUSE);
        let arguments = types::SubmitArgs::new().timespec(&pause);
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            match self.ring.submitter().submit_with_args(1, &arguments) {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::TIME) => waits(),
                Err(error) if !is_transient(&error) => return Err(error),
                _ => {}
            }
        }
    }

    /// Removes the block device. Waits until its requests have ended.
    pub fn stop(&mut self, number: u32) -> io::Result<()> {
        self.run(STOP, number, &[])
    }

    /// Removes the device. If a program has the device open, the driver keeps the number until that
    /// program closes the device.
    pub fn delete(&mut self, number: u32) -> io::Result<()> {
        self.run(DELETE, number, &[])
    }

    /// Runs a command on a copy of `bytes`, which the kernel reads or fills, and waits until the command has
    /// ended.
    fn run(&mut self, command: u32, number: u32, bytes: &[u8]) -> io::Result<()> {
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.give(command, number, bytes.len() as u16, 0)?;
        loop {
            if let Some(ended) = self.ended() {
                return ended;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if !is_transient(&error) => {
                    // The kernel may still fill these bytes, so they must stay for ever.
                    std::mem::forget(std::mem::replace(&mut self.bytes, Box::new([0; BYTES])));
                    return Err(error);
                }
                _ => {}
            }
        }
    }

    /// Queues a command with `length` bytes of data.
    fn give(&mut self, command: u32, number: u32, length: u16, data: u64) -> io::Result<()> {
        let address = match length {
            0 => 0,
            _ => self.bytes.as_mut_ptr().expose_provenance() as u64,
        };
        let command_bytes = ControlCommand {
            number,
            queue: u16::MAX,
            length,
            address,
            data,
            ..ControlCommand::default()
        };
        let mut bytes = [0; 80];
        bytes[..size_of::<ControlCommand>()].copy_from_slice(command_bytes.as_bytes());
        self.given += 1;
        let entry = opcode::UringCmd80::new(types::Fd(self.device.as_raw_fd()), command);
        let entry = entry.cmd(bytes).build().user_data(self.given);
        // SAFETY: the entry names an open descriptor, and at most `BYTES` bytes of memory. There is no
        // reference to these bytes while the kernel has them: the callers wait until the command has ended,
        // or leave the bytes to the kernel for ever.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.map_err(|_| io::ErrorKind::WouldBlock.into())
    }

    /// The result of the last command, if it has ended.
    fn ended(&mut self) -> Option<io::Result<()>> {
        let last = self.given;
        let mut completions = self.ring.completion();
        let entry = completions.find(|entry| entry.user_data() == last)?;
        Some(match entry.result() {
            0.. => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        })
    }

    /// The bytes that the last command has filled.
    fn filled<const N: usize>(&self) -> [u8; N] {
        std::array::from_fn(|at| self.bytes[at])
    }
}

/// Whether the release of a kernel, such as `6.12.95+deb12`, is this version or a later version.
fn is_at_least(release: &str, version: (u32, u32)) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    next()
        .zip(next())
        .is_some_and(|release: (u32, u32)| release >= version)
}

/// The ioctl number of a command of the driver (`UBLK_F_CMD_IOCTL_ENCODE`).
const fn command(direction: Direction, number: u8) -> u32 {
    ioctl::from_components(direction, b'u', number, size_of::<ControlCommand>())
}

const GET_INFO: u32 = command(Direction::Read, 0x02);
const ADD: u32 = command(Direction::ReadWrite, 0x04);
const START: u32 = command(Direction::ReadWrite, 0x06);
const STOP: u32 = command(Direction::ReadWrite, 0x07);
const SET_PARAMS: u32 = command(Direction::ReadWrite, 0x08);
const GET_FEATURES: u32 = command(Direction::Read, 0x13);
/// `UBLK_U_CMD_DEL_DEV_ASYNC`. `UBLK_U_CMD_DEL_DEV` would wait for programs that have the removed block
/// device open.
const DELETE: u32 = command(Direction::Read, 0x14);
/// The first version of Linux whose driver has the command [`DELETE`]. The driver has no feature flag for
/// this command.
const DELETES_AT_ONCE: (u32, u32) = (6, 9);

/// `UBLK_F_CMD_IOCTL_ENCODE` and `UBLK_F_USER_COPY`. `UBLK_F_UNPRIVILEGED_DEV` is left out, because with that
/// flag the kernel kills a server that holds a request for 30 s.
const FLAGS: u64 = 1 << 6 | 1 << 7;
/// The device number of a command that is about no particular device.
const ANY: u32 = u32::MAX;
const INFO: usize = size_of::<DeviceInfo>();
/// The most bytes that a command reads or fills.
const BYTES: usize = 128;
/// The time between two calls of `waits` by [`Control::start`].
const PAUSE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::{ADD, BYTES, DELETE, GET_FEATURES, INFO, Params, is_at_least};

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_at_least("6.12.95+deb12-cloud-amd64", (6, 9)));
        assert!(is_at_least("6.9-rc1", (6, 9)) && is_at_least("7.0.0", (6, 9)));
        assert!(!is_at_least("6.8.0-31-generic", (6, 9)) && !is_at_least("odd", (6, 9)));
    }

    #[test]
    fn commands_have_the_numbers_of_the_drivers_header() {
        assert_eq!(ADD, 0xc020_7504);
        assert_eq!(GET_FEATURES, 0x8020_7513);
        assert_eq!(DELETE, 0x8020_7514);
    }

    #[test]
    fn all_commands_have_room() {
        assert!(INFO <= BYTES && size_of::<Params>() <= BYTES);
    }
}
