//! Why the daemon did not do what it was asked: one sentence, and what to do instead.

use std::fmt;

use dashpot_api::Error;
use dashpot_engine::CommandError;
use dashpot_export::ShardGone;
use dashpot_rules::{ParseError, nearest};

/// A refusal. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind it is, which decides the status of the HTTP answer.
    pub kind: RefusalKind,
    /// What was wrong, with the value that was.
    pub error: String,
    /// What to do instead, if that is not clear from the error.
    pub remedy: Option<String>,
}

/// What kind of refusal it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request cannot be read.
    BadRequest,
    /// What it names does not exist.
    NotFound,
    /// It does not fit what exists.
    Conflict,
    /// It is more than is read.
    TooLarge,
    /// It can be read, but what it asks for cannot be.
    Unprocessable,
    /// A part of the daemon has failed.
    Failed,
    /// There is no room for the answer now.
    Full,
}

impl Refusal {
    /// A refusal without a remedy.
    pub fn new(kind: RefusalKind, error: impl Into<String>) -> Refusal {
        Refusal {
            kind,
            error: error.into(),
            remedy: None,
        }
    }

    /// A refusal of a request that cannot be read.
    pub fn bad_request(error: impl Into<String>) -> Refusal {
        Refusal::new(RefusalKind::BadRequest, error)
    }

    /// A refusal of a request that does not fit what exists.
    pub fn conflict(error: impl Into<String>) -> Refusal {
        Refusal::new(RefusalKind::Conflict, error)
    }

    /// Nothing of this name exists; one that is nearly called so may be meant.
    pub fn not_found<'a>(
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Refusal {
        let known: Vec<&str> = known.into_iter().collect();
        let remedy = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean '{near}'?"),
            None if known.is_empty() => format!("there is no {what}"),
            None => format!("there is {}", known.join(", ")),
        };
        let name = name.escape_debug();
        Refusal::new(RefusalKind::NotFound, format!("no {what} '{name}'")).remedy(remedy)
    }

    /// The same refusal with what to do instead.
    pub fn remedy(self, remedy: impl Into<String>) -> Refusal {
        Refusal {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

impl From<ParseError> for Refusal {
    fn from(error: ParseError) -> Refusal {
        Refusal::new(RefusalKind::Unprocessable, error.to_string())
    }
}

impl From<CommandError> for Refusal {
    fn from(error: CommandError) -> Refusal {
        let kind = match error {
            CommandError::UnknownDisk(_)
            | CommandError::UnknownPool(_)
            | CommandError::UnknownRule(_) => RefusalKind::NotFound,
            CommandError::InvalidRule(_) | CommandError::Tunable(_) => RefusalKind::Unprocessable,
            CommandError::TooManyRules { .. } | CommandError::Resumed => RefusalKind::Conflict,
        };
        Refusal::new(kind, error.to_string())
    }
}

impl From<ShardGone> for Refusal {
    fn from(error: ShardGone) -> Refusal {
        Refusal::new(RefusalKind::Failed, error.to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.remedy {
            Some(remedy) => write!(f, "{}: {remedy}", self.error),
            None => f.write_str(&self.error),
        }
    }
}

impl std::error::Error for Refusal {}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        Error {
            error: refusal.error,
            remedy: refusal.remedy,
        }
    }
}
