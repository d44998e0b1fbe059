//! Disks and volumes as block devices of this host: `attach`, `mount`, `detach` and `dmsetup`.
//!
//! All of them need root; the daemon that serves the disks needs no privilege. For a loop device `attach` mounts a
//! file, hands the descriptor of the mount's connection to the daemon, and makes the device from the file. For a
//! device of the kernel's NBD client it makes a pair of sockets, one for the daemon and one for the kernel. For a
//! ublk device it makes the device's queue, hands the queue to the daemon, and starts the device. If a step fails,
//! `attach` undoes the earlier steps. `detach` undoes the steps in reverse order. `dmsetup` starts a daemon for each
//! device, and attaches its disk.
//!
//! No process of this crate serves a disk.

mod answers;
mod attach;
pub mod attacher;
mod block_device;
mod detach;
mod device_lock;
pub mod dmsetup;
mod down;
mod exported;
mod file_system;
mod fuse_mount;
mod guard;
mod kernel_log;
mod kinds;
mod link;
mod loop_device;
mod mechanism;
mod mount;
mod nbd_device;
mod netlink;
mod place;
mod process;
mod stale;
mod state;
mod sysfs;
mod takeover;
mod target;
mod tool;
#[cfg_attr(not(feature = "ublk"), path = "ublk_absent.rs")]
mod ublk_device;

pub use attach::attach;
pub use detach::detach;
pub use guard::become_guard;
pub use kernel_log::Left;
pub use mount::mount;
pub use state::left_at;
pub use sysfs::{Queue, queue_of};
pub use takeover::{Waiting, waiting_for};
