//! Why a recording cannot be written or read.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a recording cannot be written or read. Each message names the file.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The operating system refused an operation on the file.
    #[error("{}: {refusal}", path.display())]
    Io {
        /// The file or the directory.
        path: PathBuf,
        /// The operating system's error.
        refusal: io::Error,
    },
    /// The file or the directory is not a recording.
    #[error("{}: this is not a recording: dashpot did not write it", path.display())]
    Foreign {
        /// The file or the directory.
        path: PathBuf,
    },
    /// A newer version of dashpot wrote the file.
    #[error(
        "{}: the recording has format {version}, and this dashpot reads up to format {known}: use a newer dashpot",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        version: u64,
        /// The newest format that this version knows.
        known: u64,
    },
    /// An older version of dashpot wrote the file.
    #[error(
        "{}: the recording has format {version}, from before dashpot's first release; this dashpot reads \
         formats from {known} on: record again",
        path.display()
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// The format of the file.
        version: u64,
        /// The oldest format that this version knows.
        known: u64,
    },
    /// The file was changed or cut off after it had been written.
    #[error("{}: the file is damaged: {what}: delete it or restore it from a copy", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage, in words.
        what: String,
    },
    /// Another user owns the directory, and so could read and change what is recorded.
    #[error(
        "{}: user {uid} owns this directory, and may have made it for you to find: choose another with -o",
        path.display()
    )]
    OfAnother {
        /// The directory.
        path: PathBuf,
        /// The user who owns it.
        uid: u32,
    },
    /// Another process is writing this recording.
    #[error("{}: another process is recording here: choose another directory with -o", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
}

impl RecordingError {
    /// Wraps an error of the operating system.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> RecordingError {
        let path = path.to_owned();
        |refusal| RecordingError::Io { path, refusal }
    }
}

/// A flaw in the bytes of a file; the caller adds the file's name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Foreign,
    Newer(u64),
    Older(u64),
    Damaged(String),
}

impl Flaw {
    /// A flaw with this message. The decoder's messages quote bytes of the file, so this function shortens
    /// the message and replaces control characters.
    pub(crate) fn damaged(what: impl ToString) -> Flaw {
        let what = what.to_string();
        let plain = what.chars().map(|one| {
            if one.is_control() {
                char::REPLACEMENT_CHARACTER
            } else {
                one
            }
        });
        Flaw::Damaged(plain.take(SAID_MAX).collect())
    }

    pub(crate) fn of(self, path: &Path) -> RecordingError {
        let path = path.to_owned();
        match self {
            Flaw::Foreign => RecordingError::Foreign { path },
            Flaw::Newer(version) => RecordingError::Newer {
                path,
                version,
                known: crate::table::VERSION,
            },
            Flaw::Older(version) => RecordingError::Older {
                path,
                version,
                known: crate::table::OLDEST,
            },
            Flaw::Damaged(what) => RecordingError::Damaged { path, what },
        }
    }
}

/// The maximum number of characters in a message about a file's bytes.
const SAID_MAX: usize = 200;

impl From<parquet::errors::ParquetError> for Flaw {
    fn from(error: parquet::errors::ParquetError) -> Flaw {
        Flaw::damaged(error)
    }
}
