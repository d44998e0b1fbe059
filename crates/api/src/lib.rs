//! The API of a daemon. The server, the client and the OpenAPI document share its types, and the command line
//! uses its blocking client. This crate also has the addresses at which client and daemon meet, and the
//! random words for tokens.
//!
//! Times are integers in nanoseconds (`_ns`), and sizes are integers in bytes (`_bytes`). Ages count back from
//! `at_ns`, a moment of the daemon's monotonic clock. This crate does not depend on the daemon: the daemon
//! fills in these types and serves them.

mod client;
mod place;
mod random;
mod types;

pub use ::http::{Method, StatusCode};
pub use client::{Client, ClientError, Lease, WantedZios, hand_over};
pub use place::{
    RUNTIME_DIR_REMEDY, TOKEN_VARIABLE, default_socket, handover_socket, kernel_recording_link,
    recording_link, runtime_dir, token_file, token_from_environment, user_id, whole_address,
};
pub use random::{random_number, random_word};
pub use types::*;
