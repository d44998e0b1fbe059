//! The kernel's ublk driver: block devices whose requests a process serves.
//!
//! The kernel's include/uapi/linux/ublk_cmd.h defines the interface. A privileged process makes and removes
//! devices with the commands of [`Control`]. The process that serves a device keeps the character device
//! open, and takes requests from the device's [`Queue`]. Each device here has one queue. The server reads and
//! writes the data of requests with `pread` and `pwrite` on the character device (`UBLK_F_USER_COPY`, since
//! Linux 6.5). The driver deletes devices at once (since Linux 6.9).

mod control;
mod layout;
mod queue;

pub use control::{CONTROL, Control};
pub use layout::{Access, Descriptor, DeviceInfo, Geometry, flag, op};
pub use queue::{Event, Queue};
