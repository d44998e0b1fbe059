//! The API of a daemon: one set of types for the server, the client and the document, and the client
//! that the command line is.
//!
//! Times are integers of nanoseconds (`_ns`), sizes integers of bytes (`_bytes`). Ages count back
//! from the moment `at_ns` of the daemon's monotonic clock. The crate knows no daemon: whoever
//! serves the API fills these types in.

mod client;
mod place;
mod types;

pub use ::http::{Method, StatusCode};
pub use client::{Client, ClientError, Lease, WantedZios};
pub use place::{default_socket, runtime_dir, token_file, user_id};
pub use types::*;
