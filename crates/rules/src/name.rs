//! Names of disks and rules, and the known name that is closest to an unknown name.

use super::ParseError;

const LENGTH_MAX: usize = 128;

/// Parses a name: letters, digits and `. _ / -`. At least one character must be a letter, so that no name
/// looks like the id of a rule. A name must not look like an option, and must not be `all`.
pub fn parse_name(text: &str) -> Result<String, ParseError> {
    let shown = text.escape_debug();
    let refuse = |why: &str| Err(ParseError::new(format!("'{shown}' is not a name: {why}")));
    let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | '-');
    if text.len() > LENGTH_MAX {
        return Err(ParseError::new(format!(
            "a name has at most {LENGTH_MAX} letters, and this one has {}",
            text.chars().count()
        )));
    }
    if let Some(other) = text.chars().find(|c| !known(*c)) {
        return refuse(&format!(
            "{other:?} is not among letters, digits, '.', '_', '/' and '-'"
        ));
    }
    if text.starts_with('-') {
        return refuse("it looks like an option");
    }
    if text == "all" {
        return refuse("'all' stands for all of them");
    }
    if !text.bytes().any(|byte| byte.is_ascii_alphabetic()) {
        return refuse("it has no letter, and numbers are the ids of rules");
    }
    Ok(text.to_owned())
}

/// The known name that the user probably meant by `text`. At most a third of the name's letters may be
/// mistyped.
pub fn nearest<'a>(text: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let typos = |name: &&str| strsim::damerau_levenshtein(text, name);
    let near = known.into_iter().min_by_key(typos)?;
    let allowed = (text.len().max(near.len()) / 3).max(1);
    (typos(&near) <= allowed).then_some(near)
}

/// A remedy for an unknown name: the known name that the user probably meant, or all known names.
pub fn remedy_for(text: &str, known: &[&str]) -> String {
    match nearest(text, known.iter().copied()) {
        Some(near) => format!("did you mean '{near}'?"),
        None => format!("there is {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{nearest, parse_name};

    #[test]
    fn names_cannot_be_taken_for_something_else() {
        for name in ["c1t1d0", "tank/foo", "a", "my-disk_2.img", "0x1f"] {
            assert_eq!(parse_name(name), Ok(name.to_owned()));
        }
        for name in [
            "",
            "7",
            "all",
            "-d",
            "a b",
            "a,b",
            "a=b",
            "dïsk",
            "a\n",
            "..",
            &"a".repeat(129),
        ] {
            assert!(parse_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_typo_finds_its_name() {
        let known = ["store", "size", "block", "read_only", "rules"];
        assert_eq!(nearest("sise", known), Some("size"));
        assert_eq!(nearest("readonly", known), Some("read_only"));
        assert_eq!(nearest("bolck", known), Some("block"));
        assert_eq!(nearest("color", known), None);
    }
}
