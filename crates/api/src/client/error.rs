//! Why a call to a daemon failed.

use std::{fmt, io};

use dashpot_rules::Address;
use http::StatusCode;

use super::silence::Silence;
use crate::types;

/// Why a call failed.
#[derive(Debug)]
pub enum ClientError {
    /// Nothing listens there, or this user may not connect.
    NoDaemon { address: Address, error: io::Error },
    /// The daemon took the connection, and has not answered in time.
    Silent { address: Address, silence: Silence },
    /// The connection ended before the answer was complete.
    Gone { address: Address, why: String },
    /// The daemon refused.
    Refused {
        status: StatusCode,
        error: types::Error,
    },
    /// What answers is no daemon of this version.
    Unexpected(String),
    /// The user gave up waiting.
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
                 user whose daemon it is, or as root, or name another with --api"
            ),
            ClientError::NoDaemon { address, error } => write!(
                f,
                "no daemon at {address} ({error}): start one with 'dashpot serve', or name the one \
                 that you mean with --api"
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
                "the daemon's answer is not understood ({what}): is it of another version?"
            ),
            ClientError::Interrupted => f.write_str("interrupted"),
        }
    }
}

impl std::error::Error for ClientError {}

fn is_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}
