//! The FUSE frontend: an export is the only file of a file system, and the kernel is its client.
//!
//! The kernel's include/uapi/linux/fuse.h defines the protocol. A privileged process mounts the file,
//! and hands the descriptor of the connection to the daemon. A loop device over the file then makes the
//! file a block device. The file is the root of its file system, so there are no names to look up.
//! `handshake` answers the kernel's first message. `decode` turns messages into requests, with the layout of
//! [`wire`]. `encode` turns replies into bytes.

mod decode;
mod encode;
mod handshake;
mod transport;
mod wire;

pub use self::decode::decode;
pub(crate) use self::transport::Session;
