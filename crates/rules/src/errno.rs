//! Errors to inject, by their names in C. NBD can carry eight of them.

use dashpot_engine::Errno;

use super::ParseError;

/// Parses the name of an error that NBD can carry, in upper or lower case.
pub(crate) fn parse_errno(text: &str) -> Result<Errno, ParseError> {
    let named = |errno: &Errno| errno.name().eq_ignore_ascii_case(text);
    Errno::ALL.into_iter().find(named).ok_or_else(|| {
        let names = Errno::ALL.map(Errno::name).join(" ");
        ParseError::new(format!("NBD cannot carry '{text}': it carries {names}"))
    })
}

#[cfg(test)]
mod tests {
    use super::parse_errno;
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
        assert_eq!(
            parse_errno("ETIMEDOUT").map_err(|e| e.to_string()),
            Err(
                "NBD cannot carry 'ETIMEDOUT': it carries EPERM EIO ENOMEM EINVAL ENOSPC \
                 EOVERFLOW ENOTSUP ESHUTDOWN"
                    .to_owned()
            )
        );
    }
}
