//! Refusals in zinject's words.

use std::fmt;

/// Why a command line, or the request in it, is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The text for stderr, without `zinject: `.
    pub message: String,
    /// Whether the usage follows the text.
    pub usage: bool,
    /// The exit code.
    pub code: u8,
}

impl Refusal {
    /// A refusal of the request.
    pub fn failure(message: String) -> Refusal {
        Refusal {
            message,
            usage: false,
            code: 1,
        }
    }

    /// A refusal of the command line.
    pub(super) fn usage(code: u8, message: impl Into<String>) -> Refusal {
        Refusal {
            message: message.into(),
            usage: true,
            code,
        }
    }

    /// The refusal for a disk that is not served.
    pub fn unknown_device(device: impl fmt::Display, pool: &str) -> Refusal {
        Refusal::failure(format!("cannot find device '{device}' in pool '{pool}'"))
    }

    /// The refusal for an unknown handler. The id may belong to a rule for which zinject has no words.
    pub fn unknown_handler(id: u32, is_rule: bool) -> Refusal {
        let remedy = if is_rule {
            format!("; rule {id} is not one of zinject's: 'dashpot clear {id}' removes it")
        } else {
            String::new()
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
