//! Errors to inject, by their names in C. NBD can carry only eight of these errors; a system call can return
//! any of them.

use dashpot_engine::{CallErrno, Errno};

use super::ParseError;

/// Parses the name of an error, in upper or lower case.
pub(crate) fn parse_errno(text: &str) -> Result<Errno, ParseError> {
    let named = |errno: &Errno| errno.name().eq_ignore_ascii_case(text);
    let carried = Errno::ALL.into_iter().find(named);
    let found = carried.or_else(|| CallErrno::of_name(text).map(Errno::OfCall));
    found.ok_or_else(|| {
        ParseError::new(format!(
            "'{text}' is not an error: NBD carries {}, and the calls of a path disk can return any errno",
            carried_names()
        ))
    })
}

/// Refuses an error that NBD cannot carry.
pub(crate) fn check_carried(errno: Errno) -> Result<(), ParseError> {
    match errno {
        Errno::OfCall(errno) => Err(ParseError::new(format!(
            "NBD cannot carry '{}': it carries {}",
            errno.name(),
            carried_names()
        ))),
        _ => Ok(()),
    }
}

fn carried_names() -> String {
    Errno::ALL.map(Errno::name).join(" ")
}

#[cfg(test)]
mod tests {
    use super::{check_carried, parse_errno};
    use dashpot_engine::Errno;

    #[test]
    fn names_are_read_in_any_case() {
        for errno in Errno::ALL {
            assert_eq!(parse_errno(errno.name()), Ok(errno));
            assert_eq!(parse_errno(&errno.name().to_lowercase()), Ok(errno));
        }
    }

    #[test]
    fn what_nbd_cannot_carry_is_refused_with_what_it_can() {
        let known = parse_errno("etimedout").unwrap();
        assert_eq!(
            check_carried(known).map_err(|e| e.to_string()),
            Err(
                "NBD cannot carry 'ETIMEDOUT': it carries EPERM EIO ENOMEM EINVAL ENOSPC \
                 EOVERFLOW ENOTSUP ESHUTDOWN"
                    .to_owned()
            )
        );
        let error = parse_errno("EFOO").unwrap_err().to_string();
        assert!(
            error.starts_with("'EFOO' is not an error: NBD carries EPERM EIO"),
            "{error}"
        );
    }
}
