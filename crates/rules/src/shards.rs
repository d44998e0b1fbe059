//! The number of shards.

use super::ParseError;

/// Parses a number of shards. Accepts 1 to 64.
pub fn parse_shards(text: &str) -> Result<usize, ParseError> {
    text.parse()
        .ok()
        .filter(|n| (1..=64).contains(n))
        .ok_or_else(|| ParseError::new(format!("'{text}' shards are not possible: give 1 to 64")))
}
