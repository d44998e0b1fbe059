//! The refusal of a request: one sentence, and the remedy.

use std::fmt;

use dashpot_api::Error;
use dashpot_engine::CommandError;
use dashpot_export::ShardGone;
use dashpot_rules::{ParseError, remedy_for};

/// A refusal. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kind, which decides the status of the HTTP answer.
    pub kind: RefusalKind,
    /// The error, with the value.
    pub error: String,
    /// The remedy, unless the error itself makes it clear.
    pub remedy: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The daemon cannot parse the request.
    BadRequest,
    /// The request names something that does not exist.
    NotFound,
    /// The request does not fit the present state.
    Conflict,
    /// The request is larger than the daemon accepts.
    TooLarge,
    /// The daemon can parse the request, but cannot do what it asks for.
    Unprocessable,
    /// A part of the daemon has failed.
    Failed,
    /// Other answers use the memory that this answer needs.
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

    /// A refusal of a request that does not fit the present state.
    pub fn conflict(error: impl Into<String>) -> Refusal {
        Refusal::new(RefusalKind::Conflict, error)
    }

    /// A refusal because no `what` is called `name`. The remedy proposes the most similar of the
    /// `known` names, or lists these names.
    pub fn not_found<'a>(
        what: &str,
        name: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) -> Refusal {
        let known: Vec<&str> = known.into_iter().collect();
        let remedy = if known.is_empty() {
            format!("there is no {what}")
        } else {
            remedy_for(name, &known)
        };
        let name = name.escape_debug();
        Refusal::new(RefusalKind::NotFound, format!("no {what} '{name}'")).remedy(remedy)
    }

    /// Adds a remedy to the refusal.
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
