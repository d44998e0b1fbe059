//! Classes of sizes, which begin at powers of two.

use dashpot_rules::nice_number;

/// The class of a size in bytes: 0 for no bytes, otherwise 1 plus the exponent of the greatest power of
/// two that is not greater than the size.
pub fn size_class(bytes: u64) -> u32 {
    bytes.checked_ilog2().map_or(0, |exponent| exponent + 1)
}

/// The name of a size class, such as `4K-8K`: from one size to less than its double.
pub fn size_name(class: u32) -> String {
    let Some(exponent) = class.checked_sub(1) else {
        return "0".to_owned();
    };
    match 1_u64.checked_shl(exponent + 1) {
        Some(to) => format!("{}-{}", nice_number(to / 2), nice_number(to)),
        None => "8E-16E".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{size_class, size_name};

    #[test]
    fn a_size_is_named_by_the_powers_of_two_around_it() {
        let name = |bytes| size_name(size_class(bytes));
        assert_eq!(name(0), "0");
        assert_eq!(name(1), "1-2");
        assert_eq!(name(4_095), "2K-4K");
        assert_eq!(name(4_096), "4K-8K");
        assert_eq!(name(1 << 20), "1M-2M");
        assert_eq!(name(u64::MAX), "8E-16E");
    }
}
