//! Refuses globs of `--client` that no client of a disk can match. The name of a client has a form, which depends
//! on how the disk is used.

use super::TypedRule;
use crate::ParseError;

/// The names that the clients of a disk can have.
#[derive(Clone, Copy, Debug)]
pub enum ClientNames<'a> {
    /// The names of programs, on a path disk.
    Programs,
    /// The names of processes, addresses and block devices, on a disk outside of all pools.
    Connections,
    /// The names of a pool and its volumes, on a disk of the pool.
    Pool(&'a [&'a str]),
}

impl TypedRule {
    /// Refuses a rule whose `--client` no client with such a name matches.
    pub fn check_client(&self, names: ClientNames<'_>) -> Result<(), ParseError> {
        let Some(glob) = &self.spec.client else {
            return Ok(());
        };
        if names.can_match(glob) {
            return Ok(());
        }
        let (disk, known) = match names {
            ClientNames::Programs => (
                "a path disk",
                "the names of programs: write 'exe=postgres', for example".to_owned(),
            ),
            ClientNames::Connections => (
                "this disk",
                "processes, addresses and block devices: write 'uid=1000 *', '* pid=7', '10.0.0.7' or \
                 '/dev/loop0', for example"
                    .to_owned(),
            ),
            ClientNames::Pool(names) => (
                "a disk of a pool",
                format!("its volumes and its pool: write one of {}", names.join(", ")),
            ),
        };
        Err(ParseError::new(format!(
            "--client '{glob}': the clients of {disk} are {known}"
        )))
    }
}

impl ClientNames<'_> {
    fn can_match(self, glob: &str) -> bool {
        let meets = |form: &str| globs_meet(glob.as_bytes(), form.as_bytes());
        meets(OTHER)
            || match self {
                ClientNames::Programs => meets("exe=*"),
                ClientNames::Connections => {
                    let is_of_address =
                        |letter: char| letter.is_ascii_hexdigit() || ".:*?".contains(letter);
                    meets("uid=* pid=*")
                        || meets("/*")
                        || meets("unknown")
                        || glob.chars().all(is_of_address)
                }
                ClientNames::Pool(names) => names.iter().any(|name| meets(name)),
            }
    }
}

/// Whether some text matches both globs, in which `*` stands for any run of bytes and `?` for any one byte.
fn globs_meet(one: &[u8], two: &[u8]) -> bool {
    // Whether the ends of the globs meet: the end of `one` behind those that are done, and each end of `two`.
    let mut below = vec![false; two.len() + 1];
    for at in (0..=one.len()).rev() {
        let first = one.get(at);
        let mut row = vec![false; two.len() + 1];
        for to in (0..=two.len()).rev() {
            let next = |row: &[bool]| row.get(to + 1).copied().unwrap_or(false);
            row[to] = match (first, two.get(to)) {
                (None, None) => true,
                (Some(b'*'), _) => below[to] || next(&row),
                (_, Some(b'*')) => next(&row) || first.is_some() && below[to],
                (Some(a), Some(b)) => (a == b || *a == b'?' || *b == b'?') && next(&below),
                _ => false,
            };
        }
        below = row;
    }
    below[0]
}

/// The name of clients that a disk does not tell apart.
const OTHER: &str = "other";

#[cfg(test)]
mod tests {
    use super::{ClientNames, globs_meet};
    use crate::parse_injection;
    use dashpot_engine::glob_matches;
    use proptest::prelude::{ProptestConfig, proptest};

    #[test]
    fn globs_that_no_client_can_match_are_refused() {
        let refused = |names: ClientNames<'_>, glob: &str| {
            let words = format!("-D 1ms --client '{glob}'");
            let rule = parse_injection(&words).unwrap().rules.remove(0);
            rule.check_client(names)
                .err()
                .map(|error| error.to_string())
        };
        let programs = ClientNames::Programs;
        for glob in ["exe=postgres", "exe=*", "*postgres", "*", "other", "???=sh"] {
            assert_eq!(refused(programs, glob), None, "{glob}");
        }
        for glob in ["uid=0 *", "postgres", "exe", "comm=sh"] {
            let error = refused(programs, glob).unwrap();
            assert!(error.contains("write 'exe=postgres'"), "{error}");
        }
        let connections = ClientNames::Connections;
        for glob in [
            "uid=0 pid=7",
            "*pid=7",
            "uid=*",
            "10.0.0.*",
            "fe80::?",
            "/dev/loop0",
            "*",
            "other",
        ] {
            assert_eq!(refused(connections, glob), None, "{glob}");
        }
        for glob in ["exe=postgres", "pid=7", "postgres", "uid=0", "dev/loop0"] {
            let error = refused(connections, glob).unwrap();
            assert!(error.contains("'uid=1000 *'"), "{error}");
        }
        let pool = ClientNames::Pool(&["tank/db", "tank"]);
        assert_eq!(refused(pool, "tank/*"), None);
        let error = refused(pool, "uid=0 *").unwrap();
        assert!(error.ends_with("write one of tank/db, tank"), "{error}");
    }

    #[test]
    fn globs_meet_if_one_text_matches_both() {
        let parts = "[ab?*]{0,4}";
        let mut texts = vec![String::new()];
        for at in 0.. {
            if texts[at].len() == 8 {
                break;
            }
            let longer = ["a", "b"].map(|letter| texts[at].clone() + letter);
            texts.extend(longer);
        }
        proptest!(ProptestConfig::with_cases(64), |(one in parts, two in parts)| {
            let matches = |glob: &str, text: &String| glob_matches(glob.as_bytes(), text.as_bytes());
            let naive = texts.iter().any(|text| matches(&one, text) && matches(&two, text));
            assert_eq!(globs_meet(one.as_bytes(), two.as_bytes()), naive, "{one} {two}");
        });
    }
}
