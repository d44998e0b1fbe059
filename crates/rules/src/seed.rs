//! Seeds of random choices.

use super::ParseError;

/// A seed: any whole number of 64 bits.
pub fn parse_seed(text: &str) -> Result<u64, ParseError> {
    text.parse().map_err(|_| {
        ParseError::new(format!(
            "'{text}' is not a seed: give a whole number, 0 to {}",
            u64::MAX
        ))
    })
}
