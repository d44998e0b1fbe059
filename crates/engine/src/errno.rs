//! The errors of system calls, by their names and numbers on Linux.

/// An error that a system call can return, even if NBD cannot carry it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallErrno(u8);

impl CallErrno {
    /// The error with this name, in upper or lower case.
    pub fn of_name(name: &str) -> Option<CallErrno> {
        let known = |(known, _): &(&str, u8)| known.eq_ignore_ascii_case(name);
        let at = TABLE.iter().position(known)?;
        u8::try_from(at).ok().map(CallErrno)
    }

    /// The error's name in C.
    pub const fn name(self) -> &'static str {
        TABLE[self.0 as usize].0
    }

    /// The error's number on Linux, which is the same on x86-64 and ARM64.
    pub const fn number(self) -> u8 {
        TABLE[self.0 as usize].1
    }
}

/// Names and numbers from Linux's include/uapi/asm-generic/errno-base.h and errno.h.
const TABLE: [(&str, u8); 63] = [
    ("EPERM", 1),
    ("ENOENT", 2),
    ("ESRCH", 3),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("E2BIG", 7),
    ("EBADF", 9),
    ("EAGAIN", 11),
    ("EWOULDBLOCK", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("ENOTBLK", 15),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("EXDEV", 18),
    ("ENODEV", 19),
    ("ENOTDIR", 20),
    ("EISDIR", 21),
    ("EINVAL", 22),
    ("ENFILE", 23),
    ("EMFILE", 24),
    ("ENOTTY", 25),
    ("ETXTBSY", 26),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("ESPIPE", 29),
    ("EROFS", 30),
    ("EMLINK", 31),
    ("EPIPE", 32),
    ("ERANGE", 34),
    ("EDEADLK", 35),
    ("ENAMETOOLONG", 36),
    ("ENOLCK", 37),
    ("ENOSYS", 38),
    ("ENOTEMPTY", 39),
    ("ELOOP", 40),
    ("ENODATA", 61),
    ("ETIME", 62),
    ("ENOLINK", 67),
    ("ECOMM", 70),
    ("EPROTO", 71),
    ("EBADMSG", 74),
    ("EOVERFLOW", 75),
    ("EOPNOTSUPP", 95),
    ("ENOTSUP", 95),
    ("ENOBUFS", 105),
    ("ESHUTDOWN", 108),
    ("ENETDOWN", 100),
    ("ENETUNREACH", 101),
    ("ECONNRESET", 104),
    ("ENOTCONN", 107),
    ("ETIMEDOUT", 110),
    ("ECONNREFUSED", 111),
    ("EHOSTDOWN", 112),
    ("EHOSTUNREACH", 113),
    ("ESTALE", 116),
    ("EUCLEAN", 117),
    ("EREMOTEIO", 121),
    ("EDQUOT", 122),
    ("ENOMEDIUM", 123),
    ("ECANCELED", 125),
];

#[cfg(test)]
mod tests {
    use super::{CallErrno, TABLE};

    #[test]
    fn names_are_found_in_any_case_and_are_unlike() {
        for (name, number) in TABLE {
            let found = CallErrno::of_name(&name.to_lowercase()).unwrap();
            assert_eq!((found.name(), found.number()), (name, number));
        }
        assert_eq!(CallErrno::of_name("ENOTHING"), None);
    }
}
