//! The token of an API over TCP. The user gives the token, or dashpot makes a random one.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use dashpot_api::{TOKEN_VARIABLE, random_word, token_from_environment};

/// A token, and its origin.
pub(crate) enum Token {
    /// The user has given it, and knows it.
    Given(String),
    /// dashpot has made it, and must tell it to the user.
    Made(String),
}

impl Token {
    /// The token from the file or, if there is no file, from the environment; otherwise a random token.
    pub(crate) fn find(file: Option<&Path>) -> anyhow::Result<Token> {
        if let Some(path) = file {
            let option = format!("--token-file {}", path.display());
            let text =
                fs::read_to_string(path).with_context(|| format!("{option}: cannot be read"))?;
            return checked(&option, text.trim_end()).map(Token::Given);
        }
        match token_from_environment() {
            Some(token) => checked(TOKEN_VARIABLE, &token).map(Token::Given),
            None => random_word(LETTERS).map(Token::Made),
        }
    }

    /// The token itself.
    pub(crate) fn word(&self) -> &str {
        let (Token::Given(word) | Token::Made(word)) = self;
        word
    }
}

/// Refuses a token that an attacker can guess, or that cannot be part of a URL.
fn checked(option: &str, token: &str) -> anyhow::Result<String> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
    if token.len() < LETTERS_LEAST {
        bail!(
            "{option}: the token has {} letters: give at least {LETTERS_LEAST}, \
             for example those of 'openssl rand -hex 16'",
            token.len()
        );
    }
    if !token.chars().all(is_plain) {
        bail!(
            "{option}: the token has other characters than letters, digits, '-', '.', '_' and '~'"
        );
    }
    Ok(token.to_owned())
}

/// How many letters a random token has.
const LETTERS: usize = 32;
/// The smallest number of letters in a token that a user gives.
const LETTERS_LEAST: usize = 16;

#[cfg(test)]
mod tests {
    use super::{Token, checked};
    use std::fs;

    #[test]
    fn a_token_that_can_be_guessed_or_not_be_sent_is_refused() {
        for (token, why) in [
            ("", "0 letters"),
            ("secret", "6 letters"),
            ("0123456789abcdef&x=y", "other characters"),
        ] {
            let refused = checked("DASHPOT_TOKEN", token).unwrap_err().to_string();
            assert!(
                refused.contains("DASHPOT_TOKEN") && refused.contains(why),
                "{refused}"
            );
        }
        assert!(checked("DASHPOT_TOKEN", "0123456789-._~ab").is_ok());
    }

    #[test]
    fn a_file_may_end_with_a_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        fs::write(&path, "0123456789abcdef\n").unwrap();
        assert_eq!(Token::find(Some(&path)).unwrap().word(), "0123456789abcdef");
        let missing = Token::find(Some(&directory.path().join("none")));
        let missing = missing.err().unwrap().to_string();
        assert!(
            missing.contains("--token-file") && missing.contains("cannot be read"),
            "{missing}"
        );
    }
}
