use std::iter;
use std::ops::Range;

use super::super::{Label, LabelPlace, Side};
use super::{Found, assemble, common, joined};

const SIZE: u64 = 100;

fn one(range: Range<u64>) -> Vec<Range<u64>> {
    iter::once(range).collect()
}

fn side(place: LabelPlace, label: Option<(&str, u64, Vec<u32>)>) -> Found {
    let label = label.map(|(mirror, events, regions)| Label {
        mirror: mirror.to_owned(),
        events,
        region_size: 10,
        regions,
    });
    let disk = "d".to_owned();
    (Side { disk, place }, label, one(0..SIZE))
}

/// Starts a mirror. Returns the sides that are not current, one bit for each, and the ranges in which the
/// sides may differ.
fn start(sides: Vec<Found>) -> (u64, Vec<Range<u64>>) {
    let known = assemble(sides, SIZE).unwrap().known;
    (known.stale, known.differ)
}

#[test]
fn a_clean_stop_leaves_nothing_to_repair() {
    let label = || Some(("m", 7, vec![]));
    let sides = vec![
        side(LabelPlace::Bitmap, label()),
        side(LabelPlace::Bitmap, label()),
    ];
    assert_eq!(start(sides), (0, vec![]));
}

#[test]
fn after_an_unclean_stop_the_regions_of_both_labels_differ() {
    let sides = vec![
        side(LabelPlace::Bitmap, Some(("m", 7, vec![1, 2]))),
        side(LabelPlace::Bitmap, Some(("m", 8, vec![2, 9]))),
    ];
    assert_eq!(start(sides), (0, vec![10..30, 90..100]));
}

#[test]
fn a_side_that_was_away_or_is_new_is_not_believed() {
    for other in [Some(("m", 6, vec![])), None] {
        let sides = vec![
            side(LabelPlace::Bitmap, other),
            side(LabelPlace::Bitmap, Some(("m", 8, vec![]))),
        ];
        assert_eq!(start(sides), (0b01, one(0..SIZE)));
    }
}

#[test]
fn bytes_that_vanish_are_never_believed() {
    let sides = vec![side(LabelPlace::None, None), side(LabelPlace::Bitmap, None)];
    assert_eq!(start(sides), (0b01, one(0..SIZE)));
}

#[test]
fn a_new_mirror_is_made_equal_to_its_first_side_where_there_is_data() {
    let mut sides = vec![
        side(LabelPlace::Bitmap, None),
        side(LabelPlace::Bitmap, None),
    ];
    sides[0].2 = one(0..10);
    sides[1].2 = vec![5..20, 50..60];
    assert_eq!(start(sides), (0b10, vec![0..20, 50..60]));
}

#[test]
fn two_mirrors_do_not_mix() {
    let sides = vec![
        side(LabelPlace::Bitmap, Some(("m", 7, vec![]))),
        side(LabelPlace::Bitmap, Some(("n", 7, vec![]))),
    ];
    let refused = assemble(sides, SIZE).unwrap_err();
    assert!(refused.contains("two different mirrors"), "{refused}");
}

#[test]
fn ranges_are_joined_and_cut() {
    let one = joined([3..5, 0..2, 4..9].into_iter());
    assert_eq!(one, [0..2, 3..9]);
    assert_eq!(common(&one, &[1..4, 8..20]), [1..2, 3..4, 8..9]);
    assert_eq!(common(&one, &[]), []);
}
