//! Whether a source knows the facts that a question asks for.

use dashpot_observe::{Dimension, Knows, Question};
use dashpot_rules::ParseError;

/// Refuses a question about facts that the source does not know.
pub fn check_known(question: &Question, knows: Knows) -> Result<(), ParseError> {
    check_dimensions(question.dimensions(), knows)
}

/// Fails if the source does not know one of these facts, and names the first such fact.
pub fn check_dimensions(
    mut asked: impl Iterator<Item = Dimension>,
    knows: Knows,
) -> Result<(), ParseError> {
    match asked.find(|dimension| !dimension.is_known(knows)) {
        Some(dimension) => Err(unknown(dimension, knows)),
        None => Ok(()),
    }
}

fn unknown(dimension: Dimension, knows: Knows) -> ParseError {
    let whose = match knows {
        Knows::Zios => "dashpot's disks and simulations know their clients, not processes",
        Knows::Kernel => "the kernel's disks know processes, not dashpot's clients, rules or waits",
    };
    let known = Dimension::ALL
        .into_iter()
        .filter(|known| known.is_known(knows));
    let known: Vec<&str> = known.map(Dimension::word).collect();
    let (word, known) = (dimension.word(), known.join(", "));
    ParseError::new(format!(
        "'{word}' is unknown here: {whose}; take one of {known}"
    ))
}
