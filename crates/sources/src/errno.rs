//! The names of errors of the kernel's block layer.

/// The name of an errno of the kernel's block layer, or its number.
pub(crate) fn errno_name(errno: i32) -> String {
    // The kernel's functions return errors as negative numbers.
    let number = errno.unsigned_abs();
    let known = NAMES.iter().find(|(known, _)| *known == number);
    known.map_or_else(|| format!("errno {number}"), |(_, name)| (*name).to_owned())
}

const NAMES: [(u32, &str); 15] = [
    (5, "EIO"),
    (6, "ENXIO"),
    (11, "EAGAIN"),
    (12, "ENOMEM"),
    (16, "EBUSY"),
    (22, "EINVAL"),
    (28, "ENOSPC"),
    (52, "EBADE"),
    (61, "ENODATA"),
    (62, "ETIME"),
    (67, "ENOLINK"),
    (84, "EILSEQ"),
    (95, "EOPNOTSUPP"),
    (110, "ETIMEDOUT"),
    (121, "EREMOTEIO"),
];

#[cfg(test)]
mod tests {
    use super::errno_name;

    #[test]
    fn errors_have_names() {
        assert_eq!(
            [-5, 28, 4_095].map(errno_name),
            ["EIO", "ENOSPC", "errno 4095"]
        );
    }
}
