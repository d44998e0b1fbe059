//! Why zinject does not do what it was asked.

use std::fmt;

/// Why a command line, or what it asks for, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What goes to stderr, without `zinject: `.
    pub message: String,
    /// Whether the usage follows it.
    pub usage: bool,
    /// The exit code.
    pub code: u8,
}

impl Refusal {
    /// A refusal of what was asked for.
    pub fn failure(message: String) -> Refusal {
        Refusal {
            message,
            usage: false,
            code: 1,
        }
    }

    /// A refusal of how it was asked for.
    pub(super) fn usage(code: u8, message: impl Into<String>) -> Refusal {
        Refusal {
            message: message.into(),
            usage: true,
            code,
        }
    }

    /// The disk is not served.
    pub fn unknown_device(device: impl fmt::Display, pool: &str) -> Refusal {
        Refusal::failure(format!("cannot find device '{device}' in pool '{pool}'"))
    }

    /// There is no handler of this id, but there may be a rule that zinject has no words for.
    pub fn unknown_handler(id: u32, is_rule: bool) -> Refusal {
        let remedy = match is_rule {
            true => format!("; rule {id} is none of zinject's: 'dashpot clear {id}' removes it"),
            false => String::new(),
        };
        Refusal::failure(format!(
            "failed to remove handler {id}: no such handler{remedy}"
        ))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}
