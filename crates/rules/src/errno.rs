//! Errors to inject, by their names in C or their numbers on Linux. NBD can carry only eight of these errors;
//! a system call can return any of them.

use dashpot_engine::{CallErrno, Errno};

use super::ParseError;
use super::name::nearest;

/// Parses the name of an error, in upper or lower case, or its number.
pub(crate) fn parse_errno(text: &str) -> Result<Errno, ParseError> {
    let found = match text.parse() {
        Ok(number) => CallErrno::of_number(number),
        Err(_) => CallErrno::of_name(text),
    };
    let found = found.ok_or_else(|| {
        let near = nearest(&text.to_uppercase(), CallErrno::names());
        let remedy = match near {
            Some(near) => format!("did you mean {near}?"),
            None => "write a name, such as EIO, or a number from 1 to 133".to_owned(),
        };
        ParseError::new(format!("'{text}' is not an error of Linux: {remedy}"))
    })?;
    let carried = Errno::ALL
        .into_iter()
        .find(|it| number(*it) == found.number());
    Ok(carried.unwrap_or(Errno::OfCall(found)))
}

/// Refuses an error that NBD cannot carry, and names the nearest that it can.
pub(crate) fn check_carried(errno: Errno) -> Result<(), ParseError> {
    let Errno::OfCall(of_call) = errno else {
        return Ok(());
    };
    let carried = Errno::ALL.map(Errno::name).join(" ");
    Err(ParseError::new(format!(
        "NBD cannot carry '{}': it carries {carried}, of which {} is the nearest; a path disk returns any errno",
        of_call.name(),
        nearest_carried(of_call).name(),
    )))
}

/// The error that NBD can carry with the meaning that is nearest to an error of a call.
fn nearest_carried(errno: CallErrno) -> Errno {
    match errno.name() {
        "EACCES" | "EROFS" | "EKEYREJECTED" | "ENOKEY" => Errno::Perm,
        "EAGAIN" | "ENOBUFS" | "ENFILE" | "EMFILE" | "ENOLCK" => Errno::NoMem,
        "EDQUOT" | "EFBIG" | "EMLINK" => Errno::NoSpc,
        "ERANGE" | "ENAMETOOLONG" | "E2BIG" => Errno::Overflow,
        "ENOSYS" | "ENOTTY" | "EPROTONOSUPPORT" | "ESOCKTNOSUPPORT" => Errno::NotSup,
        "EBADF" | "EDOM" | "EFAULT" | "EISDIR" | "ENOTDIR" | "ESPIPE" => Errno::Inval,
        "ENOTCONN" | "ECONNRESET" | "ECONNABORTED" | "ENETDOWN" => Errno::Shutdown,
        _ => Errno::Io,
    }
}

/// The number of an error on Linux.
fn number(errno: Errno) -> u8 {
    CallErrno::of_name(errno.name()).map_or(0, CallErrno::number)
}

#[cfg(test)]
mod tests {
    use super::{check_carried, number, parse_errno};
    use dashpot_engine::{CallErrno, Errno};

    #[test]
    fn names_are_read_in_any_case_and_numbers_mean_the_same() {
        for errno in Errno::ALL {
            assert_eq!(parse_errno(errno.name()), Ok(errno));
            assert_eq!(parse_errno(&errno.name().to_lowercase()), Ok(errno));
        }
        for name in CallErrno::names() {
            let named = parse_errno(name).unwrap();
            let number = CallErrno::of_name(name).map(CallErrno::number);
            assert_eq!(Some(self::number(named)), number, "{name}");
            let numbered = parse_errno(&number.unwrap().to_string()).unwrap();
            assert_eq!(self::number(numbered), self::number(named), "{name}");
        }
        assert_eq!(parse_errno("5"), Ok(Errno::Io));
        assert_eq!(parse_errno("EOPNOTSUPP"), Ok(Errno::NotSup));
    }

    #[test]
    fn refusals_name_what_is_possible() {
        for (text, message) in [
            (
                "etimedout",
                "NBD cannot carry 'ETIMEDOUT': it carries EPERM EIO ENOMEM EINVAL ENOSPC EOVERFLOW ENOTSUP \
                 ESHUTDOWN, of which EIO is the nearest; a path disk returns any errno",
            ),
            ("122", "'EDQUOT': it carries EPERM EIO ENOMEM EINVAL ENOSPC"),
            ("EROFS", "of which EPERM is the nearest"),
        ] {
            let error = check_carried(parse_errno(text).unwrap()).unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
        for (text, message) in [
            ("EFOO", "'EFOO' is not an error of Linux"),
            ("enospace", "did you mean ENOSPC?"),
            ("0", "a number from 1 to 133"),
            ("41", "a number from 1 to 133"),
            ("512", "'512' is not an error of Linux"),
        ] {
            let error = parse_errno(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
