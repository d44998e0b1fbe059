//! Compares maps with the histograms from which they are made.

use std::time::Duration;

use dashpot_engine::histogram::Histogram;
use dashpot_observe::InFlight;
use proptest::collection::vec as list_of;
use proptest::prelude::*;

use super::*;

fn column(latencies: &[u64]) -> HeatColumn {
    let mut histogram = Histogram::default();
    latencies.iter().for_each(|ns| histogram.record(*ns));
    let second = Duration::from_secs(1);
    HeatColumn::new(&histogram, 0, second, InFlight::default())
}

fn heat(columns: &[Vec<u64>], crop: Crop) -> HeatMap {
    HeatMap {
        columns: columns.iter().map(|one| column(one)).collect(),
        crop,
        ..HeatMap::default()
    }
}

fn whole(latencies: &[u64]) -> Map {
    let room = Size {
        columns: 80,
        bands: 60,
    };
    Map::new(&heat(&[latencies.to_vec()], Crop::default()), room)
}

/// Latencies of all magnitudes.
fn latency() -> impl Strategy<Value = u64> {
    (0..44_u32, any::<u64>()).prop_map(|(bits, draw)| draw % (1 << bits))
}

fn crop() -> impl Strategy<Value = Crop> {
    let min = proptest::option::of(1_000..1_000_000_u64);
    let max = proptest::option::of(1_000_000..10_000_000_000_u64);
    (min, max).prop_map(|(min_ns, max_ns)| Crop { min_ns, max_ns })
}

proptest! {
    #[test]
    fn no_io_is_lost_whatever_the_room(
        columns in list_of(list_of(latency(), 0..40), 1..30),
        crop in crop(),
        room in (1..40_usize, 1..70_usize),
    ) {
        let room = Size { columns: room.0, bands: room.1 };
        let map = Map::new(&heat(&columns, crop), room);
        prop_assert!(map.columns.len() <= room.columns);
        let within = map.bands.iter().filter(|band| band.place == BandPlace::Within);
        prop_assert!(within.count() <= room.bands);
        for (cells, all) in map.columns.iter().zip(columns.chunks(map.joined)) {
            let all: Vec<u64> = all.concat();
            prop_assert_eq!(cells.count(), all.len() as u64);
            for (band, count) in map.bands.iter().zip(&cells.counts) {
                let inside = |ns: &&u64| (band.from_ns..=band.to_ns).contains(*ns);
                prop_assert_eq!(all.iter().filter(inside).count() as u64, *count, "{:?}", band);
            }
        }
    }

    #[test]
    fn bands_follow_each_other(columns in list_of(list_of(latency(), 0..9), 0..9), crop in crop()) {
        let map = Map::new(&heat(&columns, crop), Size { columns: 9, bands: 20 });
        for pair in map.bands.windows(2) {
            prop_assert_eq!(pair[0].to_ns.saturating_add(1), pair[1].from_ns);
        }
    }
}

#[test]
fn a_map_is_of_the_latencies_that_there_are() {
    let edges = |map: &Map| {
        let (first, last) = (map.bands[0], map.bands[map.bands.len() - 1]);
        (round_of(first.row), round_of(last.row + 1))
    };
    assert_eq!(
        edges(&whole(&[300_000, 40_000_000])),
        (Some(200_000), Some(50_000_000))
    );
    // A map of equal latencies still spans at least a factor of ten.
    let constant = whole(&[10_000_000]);
    assert_eq!(edges(&constant), (Some(5_000_000), Some(50_000_000)));
    assert_eq!(edges(&whole(&[])), (Some(100_000), Some(100_000_000)));
}

#[test]
fn what_is_beyond_a_crop_is_one_band() {
    let crop = Crop {
        min_ns: Some(1_000_000),
        max_ns: Some(100_000_000),
    };
    let columns = [vec![5, 400_000, 1_000_000, 99_000_000, 3_000_000_000]];
    let map = Map::new(
        &heat(&columns, crop),
        Size {
            columns: 9,
            bands: 20,
        },
    );
    let (below, above) = (map.bands[0], map.bands[map.bands.len() - 1]);
    assert_eq!(
        (below.place, above.place),
        (BandPlace::Below, BandPlace::Above)
    );
    assert_eq!(below.to_ns, 999_999);
    assert_eq!((map.bands.len(), map.columns[0].counts[0]), (22, 2));
    // The last band has 3 s and 99 ms. 99 ms shares a bucket with 100 ms, at which the crop ends.
    assert_eq!(map.columns[0].counts[21], 2);
}

/// If all latencies are outside of a crop, the map must still show at least a factor of ten within the crop,
/// and count the latencies beyond it.
#[test]
fn a_crop_stands_wherever_the_latencies_are() {
    let room = Size {
        columns: 9,
        bands: 30,
    };
    let columns = [vec![240_000_000, 250_000_000]];
    for (min_ns, max_ns) in [(None, Some(50_000_000)), (Some(5_000_000_000), None)] {
        let crop = Crop { min_ns, max_ns };
        let map = Map::new(&heat(&columns, crop), room);
        let within = map
            .bands
            .iter()
            .filter(|band| band.place == BandPlace::Within);
        assert!(within.count() >= 10);
        let beyond = map.bands.iter().zip(&map.columns[0].counts);
        let beyond = beyond.filter(|(band, _)| band.place != BandPlace::Within);
        assert_eq!(beyond.map(|(_, count)| count).sum::<u64>(), 2);
    }
}
