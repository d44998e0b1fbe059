//! The kernel's ublk driver: block devices whose requests a process serves.
//!
//! The interface is defined in the kernel's include/uapi/linux/ublk_cmd.h. A privileged process makes and
//! removes devices with the commands of [`Control`]. The process that serves a device has its character
//! device open, and takes requests from its [`Queue`]. Each device here has one queue. The data of
//! requests is read and written with `pread` and `pwrite` on the character device (`UBLK_F_USER_COPY`,
//! since Linux 6.5), and devices are deleted at once (since Linux 6.9).

mod control;
mod layout;
mod queue;

pub use control::{CONTROL, Control};
pub use layout::{Access, Descriptor, DeviceInfo, Geometry, flag, op};
pub use queue::{Event, Queue};
