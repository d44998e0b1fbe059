//! Reads options as getopt(3) does: single letters, which may be written together. A value is attached to
//! its letter or is the next word. As in GNU's getopt, operands may stand anywhere between options.

/// The parsed words: the options in order, with their values, and the operands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) options: Vec<(char, String)>,
    pub(super) operands: Vec<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum GetoptError {
    /// The letter is not in the list.
    Unknown(char),
    /// The letter needs a value, but no word follows.
    NoValue(char),
}

/// Reads words with getopt's list of letters, in which a colon follows each letter that takes a value.
pub(super) fn getopt(words: &[String], letters: &str) -> Result<Words, GetoptError> {
    let mut found = Words {
        options: Vec::new(),
        operands: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix('-') {
            Some("-") => {
                found.operands.extend(words.by_ref().cloned());
            }
            Some(cluster) if !cluster.is_empty() => {
                read_cluster(cluster, letters, &mut words, &mut found.options)?;
            }
            _ => found.operands.push(word.clone()),
        }
    }
    Ok(found)
}

fn read_cluster<'a>(
    cluster: &str,
    letters: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    options: &mut Vec<(char, String)>,
) -> Result<(), GetoptError> {
    for (at, letter) in cluster.char_indices() {
        if !takes_value(letter, letters)? {
            options.push((letter, String::new()));
            continue;
        }
        let attached = &cluster[at + letter.len_utf8()..];
        let value = match attached {
            "" => rest.next().cloned().ok_or(GetoptError::NoValue(letter))?,
            _ => attached.to_owned(),
        };
        options.push((letter, value));
        break;
    }
    Ok(())
}

fn takes_value(letter: char, letters: &str) -> Result<bool, GetoptError> {
    match letters.split_once(letter) {
        Some((_, after)) if letter != ':' => Ok(after.starts_with(':')),
        _ => Err(GetoptError::Unknown(letter)),
    }
}

#[cfg(test)]
mod tests {
    use super::{GetoptError, getopt};

    fn read(line: &str) -> Result<(String, Vec<String>), GetoptError> {
        let words: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let found = getopt(&words, "qFd:D:")?;
        let options = found
            .options
            .iter()
            .map(|(letter, value)| format!("{letter}{value} "));
        Ok((options.collect(), found.operands))
    }

    #[test]
    fn clusters_attached_values_and_operands_anywhere() {
        for line in [
            "-q -F -d a -D 10:1 tank",
            "-qFda -D10:1 tank",
            "tank -qF -d a -D 10:1",
        ] {
            assert_eq!(
                read(line),
                Ok(("q F da D10:1 ".into(), vec!["tank".into()])),
                "{line}"
            );
        }
        assert_eq!(read("-d -q"), Ok(("d-q ".into(), vec![])));
        assert_eq!(
            read("-q -- -d -"),
            Ok(("q ".into(), vec!["-d".into(), "-".into()]))
        );
    }

    #[test]
    fn unknown_options_and_missing_values() {
        assert_eq!(read("-qx"), Err(GetoptError::Unknown('x')));
        assert_eq!(read("-:"), Err(GetoptError::Unknown(':')));
        assert_eq!(read("--q"), Err(GetoptError::Unknown('-')));
        assert_eq!(read("-qd"), Err(GetoptError::NoValue('d')));
    }
}
