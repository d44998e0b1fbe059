//! The environment variables by which a command finds its disks.

/// The variable with the URI of a disk for NBD clients.
pub(crate) const URI: &str = "DASHPOT_URI";
/// The variable with the block device of a disk.
pub(crate) const DEVICE: &str = "DASHPOT_DEV";

/// The variable of a disk: `DASHPOT_URI_C1T1D0` for `c1t1d0`. Characters that a shell does not allow
/// become `_`.
pub(crate) fn variable(what: &str, disk: &str) -> String {
    let letter = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    let name: String = disk.chars().map(letter).collect();
    format!("{what}_{name}")
}

#[cfg(test)]
mod tests {
    use super::variable;

    #[test]
    fn a_disk_has_a_variable_of_its_own() {
        assert_eq!(
            variable("DASHPOT_URI", "tank/foo-1"),
            "DASHPOT_URI_TANK_FOO_1"
        );
    }
}
