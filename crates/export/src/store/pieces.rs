//! Cuts ranges of bytes at multiples of a unit.

use std::ops::Range;

/// For each unit that a range touches, the index of the unit, and the part of the unit that is in the range.
pub(super) fn pieces(
    unit: u64,
    offset: u64,
    length: u64,
) -> impl Iterator<Item = (u64, Range<usize>)> {
    let end = offset + length;
    let touched = offset / unit..end.div_ceil(unit);
    touched.map(move |index| {
        let start = index * unit;
        let from = offset.max(start) - start;
        let to = (end - start).min(unit);
        (index, from as usize..to as usize)
    })
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn a_range_is_cut_where_units_meet() {
        let cut = |offset, length| pieces(10, offset, length).collect::<Vec<_>>();
        assert_eq!(cut(0, 10), [(0, 0..10)]);
        assert_eq!(cut(3, 4), [(0, 3..7)]);
        assert_eq!(cut(8, 14), [(0, 8..10), (1, 0..10), (2, 0..2)]);
        assert_eq!(cut(20, 0), []);
    }
}
