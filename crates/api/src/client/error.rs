//! The errors of calls to a daemon.

use std::{fmt, io};

use dashpot_rules::Address;
use http::StatusCode;

use super::silence::Silence;
use crate::types;

/// The error of a call.
#[derive(Debug)]
pub enum ClientError {
    /// No daemon listens at the address, or this user may not connect to it.
    NoDaemon {
        /// Where the client tried to connect.
        address: Address,
        /// The kernel's error.
        error: io::Error,
    },
    /// A program of another user listens at the address, and any user can have put it there. Nothing was sent.
    Stranger {
        /// Where it listens.
        address: Address,
        /// The user of the program.
        uid: u32,
    },
    /// The daemon accepted the connection, but did not answer in time.
    Silent {
        /// Where the daemon listens.
        address: Address,
        /// The length of the daemon's silence, and the state of its process.
        silence: Silence,
    },
    /// The connection ended before the answer was complete.
    Gone {
        /// Where the daemon listened.
        address: Address,
        /// The error of the connection, in words.
        why: String,
    },
    /// The daemon refused the request.
    Refused {
        /// The status of the answer, which is 400 or more.
        status: StatusCode,
        /// The error and its remedy.
        error: types::Error,
    },
    /// The answer cannot be decoded, because it comes from another program or from a daemon of another
    /// version.
    Unexpected(String),
    /// The user interrupted the call with Ctrl-C.
    Interrupted,
}

impl ClientError {
    pub(super) fn unexpected(error: impl fmt::Display) -> ClientError {
        ClientError::Unexpected(error.to_string())
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::NoDaemon { address, error } if is_denied(error) => write!(
                f,
                "the socket {address} may not be used by this user ({error}): use dashpot as the \
                 user whose daemon it is, or as root, or name another socket with --api"
            ),
            ClientError::NoDaemon { address, error } => write!(
                f,
                "no daemon at {address} ({error}): start one with 'dashpot serve', or name the one \
                 that you mean with --api"
            ),
            ClientError::Stranger { address, uid } => write!(
                f,
                "user {uid} listens at {address}, where any user can listen: nothing was sent; name the socket \
                 of your own daemon with --api, or use dashpot as that user"
            ),
            ClientError::Silent { address, silence } => {
                write!(f, "the daemon at {address} {silence}")
            }
            ClientError::Gone { address, why } => write!(
                f,
                "the daemon at {address} is gone: it closed the connection before it had answered \
                 ({why}); see its log, or start it again with 'dashpot serve'"
            ),
            ClientError::Refused { error, .. } => match &error.remedy {
                Some(remedy) => write!(f, "{}: {remedy}", error.error),
                None => f.write_str(&error.error),
            },
            ClientError::Unexpected(what) => write!(
                f,
                "the daemon's answer cannot be parsed ({what}): is the daemon of another version?"
            ),
            ClientError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for ClientError {}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}
