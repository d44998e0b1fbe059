//! A line in which the words of a rule are typed, checked before they are sent.

use dashpot_rules::{ParseError, parse_injection};
use ratatui::crossterm::event::{KeyCode, KeyEvent};

use super::ask::Ask;
use super::editor::Editor;

/// What is typed, and what it is for.
pub(super) struct Prompt {
    pub(super) purpose: Purpose,
    pub(super) line: Editor,
    /// What was wrong with the line as it was entered last.
    pub(super) error: Option<String>,
    /// What was sent, and has no answer yet.
    pub(super) sent: Option<Ask>,
}

/// What becomes of the words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Arm { disk: String },
    Update { rule: u32 },
}

impl Prompt {
    pub(super) fn new(purpose: Purpose, words: &str) -> Prompt {
        Prompt {
            purpose,
            line: Editor::of(words),
            error: None,
            sent: None,
        }
    }

    /// The answer to what was sent: the line can be corrected.
    pub(super) fn refused(&mut self, why: String) {
        self.error = Some(why);
        self.sent = None;
    }

    /// Edits the line, or asks for what it says. While that is under way, keys do nothing.
    pub(super) fn key(&mut self, key: KeyEvent) -> Option<Ask> {
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
    /// The words as the daemon would read them: what it would not understand is not sent.
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
