//! Whether a source knows the facts that a question asks for.

use dashpot_observe::{Dimension, Knows, Question};
use dashpot_rules::ParseError;

/// Refuses a question about facts that the source does not know.
pub(crate) fn check_known(question: &Question, knows: Knows) -> Result<(), ParseError> {
    if let Some(dimension) = question.by.filter(|by| !by.is_known(knows)) {
        return Err(unknown("--by", dimension, knows));
    }
    match question.predicates.unknown_to(knows) {
        Some(dimension) => Err(unknown("--where", dimension, knows)),
        None => Ok(()),
    }
}

fn unknown(option: &str, dimension: Dimension, knows: Knows) -> ParseError {
    let whose = match knows {
        Knows::Zios => "dashpot's disks and simulations know their clients, not processes",
        Knows::Kernel => "the kernel's disks know processes, not dashpot's clients, rules or waits",
    };
    let known = Dimension::ALL
        .into_iter()
        .filter(|known| known.is_known(knows));
    let known: Vec<&str> = known.map(Dimension::word).collect();
    let (word, known) = (dimension.word(), known.join(", "));
    ParseError::new(format!("{option} {word}: {whose}; take one of {known}"))
}
