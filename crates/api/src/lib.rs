//! The API of a daemon: its types, which the server, the client and the OpenAPI document share, and
//! a blocking client, which the command line uses; also the addresses at
//! which client and daemon meet, and random words for tokens.
//!
//! Times are integers of nanoseconds (`_ns`), sizes integers of bytes (`_bytes`). Ages count back from
//! `at_ns`, a moment of the daemon's monotonic clock. This crate does not depend on the daemon: the daemon
//! fills in these types and serves them.

#![warn(missing_docs)]

mod client;
mod place;
mod random;
mod types;

pub use ::http::{Method, StatusCode};
pub use client::{Client, ClientError, Lease, WantedZios, hand_over};
pub use place::{
    TOKEN_VARIABLE, default_socket, handover_socket, kernel_recording_link, recording_link,
    runtime_dir, token_file, token_from_environment, user_id, whole_address,
};
pub use random::{random_number, random_word};
pub use types::*;
