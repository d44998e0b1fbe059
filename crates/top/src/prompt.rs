//! A line in which the user types a rule. The prompt checks the line before it sends the rule.

use dashpot_rules::{ParseError, parse_injection};
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use crate::ask::Ask;
use crate::editor::Editor;

/// The typed line, and its purpose.
pub(crate) struct Prompt {
    pub(crate) purpose: Purpose,
    pub(crate) line: Editor,
    /// The error in the line that the user entered last.
    pub(crate) error: Option<String>,
    /// The request that was sent and has no answer yet.
    pub(crate) sent: Option<Ask>,
}

/// The purpose of the typed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Arm { disk: String },
    Update { rule: u32 },
}

impl Prompt {
    pub(crate) fn new(purpose: Purpose, words: &str) -> Prompt {
        Prompt {
            purpose,
            line: Editor::of(words),
            error: None,
            sent: None,
        }
    }

    /// Shows why the source refused the request, and lets the user correct the line.
    pub(crate) fn refused(&mut self, why: String) {
        self.error = Some(why);
        self.sent = None;
    }

    /// Edits the line, or sends it. While a request has no answer, keys do nothing.
    pub(crate) fn key(&mut self, key: KeyEvent) -> Option<Ask> {
        if self.sent.is_some() {
            return None;
        }
        self.error = None;
        if key.code != KeyCode::Enter {
            self.line.key(key);
            return None;
        }
        match self.purpose.ask(&self.line.text()) {
            Ok(ask) => self.sent = Some(ask),
            Err(error) => self.error = Some(error.to_string()),
        }
        self.sent.clone()
    }
}

impl Purpose {
    /// Parses the words as the daemon would. Words that the daemon would refuse are not sent.
    fn ask(&self, words: &str) -> Result<Ask, ParseError> {
        let words = words.trim().to_owned();
        let injection = parse_injection(&words)?;
        Ok(match self {
            Purpose::Arm { disk } => Ask::Arm {
                disk: disk.clone(),
                words,
            },
            Purpose::Update { rule } => {
                injection.replacement()?;
                Ask::Update { rule: *rule, words }
            }
        })
    }
}
