//! The ublk frontend: the kernel's ublk driver makes a block device, and sends the device's requests to
//! this frontend.
//!
//! A privileged process makes the device as [`handshake`] says, and hands its open character device to
//! the daemon. The device has one queue. `transport` takes the driver's descriptions of requests from the
//! queue, and turns each description into a message. The message of a write also has the data to write. The
//! layout of these messages, in `wire`, is our own. `decode` turns messages into requests. `encode` turns
//! replies into bytes, and `transport` turns these bytes into commands.

mod decode;
mod encode;
pub mod handshake;
mod transport;
mod wire;

pub use self::decode::decode;
pub(crate) use self::transport::Session;
