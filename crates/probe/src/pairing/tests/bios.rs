//! Tests of bios. The behaviour of dm and zram also appears in recorded traces; the behaviour of brd after
//! Linux 6.12 is taken from the kernel's source.

use super::history::{bios, lines, paired};
use crate::device::Layer;
use crate::options::Start;

#[test]
fn a_bio_is_timed_from_its_queueing() {
    let text = "
        1 bio_queue 7,0 WS 8 + 8 dd-42
        9 bio_complete 7,0 WS 8 + 8";
    let (_, finished) = paired(Layer::Bio, Start::Queue, text);
    assert_eq!(lines(&finished), ["WS 8 + 4096: 1 1 9"]);
    assert_eq!(
        finished[0]
            .submitter
            .as_ref()
            .map(|submitter| submitter.tid),
        Some(42)
    );
    assert_eq!(bios(text), ["WS 8 + 4096: - 1 9"]);
}

#[test]
fn a_bio_that_the_driver_advanced_ends_without_sectors() {
    let text = "
        1 bio_queue 7,0 R 8 + 8 dd-1
        2 bio_queue 7,0 R 16 + 8 dd-1
        5 bio_complete 7,0 R 16 + 0
        9 bio_complete 7,0 R 24 + 0";
    assert_eq!(bios(text), ["R 8 + 4096: - 1 5", "R 16 + 4096: - 2 9"]);
}

#[test]
fn an_error_stops_a_driver_in_the_middle() {
    let text = "
        1 bio_queue 7,0 R 8 + 32 dd-1
        9 bio_complete 7,0 R 24 + 16 -5";
    assert_eq!(bios(text), ["R 8 + 16384: - 1 9 error 5"]);
}

#[test]
fn a_bio_split_into_a_chain_ends_with_its_last_part() {
    let text = "
        1 bio_queue 7,0 W 0 + 32 dd-1
        2 split 7,0 W 0 / 16
        5 bio_complete 7,0 W 0 + 16
        9 bio_complete 7,0 W 16 + 16";
    assert_eq!(bios(text), ["W 0 + 16384: - 1 9"]);
}

#[test]
fn a_bio_that_dm_trims_ends_as_its_rest() {
    let text = "
        1 bio_queue 7,0 W 0 + 32 dd-1
        2 split 7,0 W 16 / 16
        3 split 7,0 W 24 / 24
        9 bio_complete 7,0 W 24 + 8";
    assert_eq!(bios(text), ["W 0 + 16384: - 1 9"]);
}

#[test]
fn the_whole_is_sought_before_the_rest() {
    let text = "
        1 bio_queue 7,0 W 0 + 32 dd-1
        2 bio_queue 7,0 W 24 + 8 dd-1
        5 bio_complete 7,0 W 24 + 8
        9 bio_complete 7,0 W 0 + 32";
    assert_eq!(bios(text), ["W 24 + 4096: - 2 5", "W 0 + 16384: - 1 9"]);
}

#[test]
fn a_flush_is_a_bio_without_sectors() {
    let text = "
        1 bio_queue 7,0 FWS 0 + 0 sync-1
        2 bio_queue 7,0 WS 0 + 8 dd-1
        5 bio_complete 7,0 FWS 0 + 0
        9 bio_complete 7,0 WS 0 + 8";
    assert_eq!(bios(text), ["FWS 0 + 0: - 1 5", "WS 0 + 4096: - 2 9"]);
}

#[test]
fn dm_takes_the_flush_off_a_write_that_asked_for_one() {
    let text = "
        1 bio_queue 7,0 FWFS 8 + 8 dd-1
        9 bio_complete 7,0 WFS 8 + 8";
    assert_eq!(bios(text), ["FWFS 8 + 4096: - 1 9"]);
}

#[test]
fn an_end_without_a_beginning_is_counted() {
    let (pairing, finished) = paired(Layer::Bio, Start::Issue, "1 bio_complete 7,0 R 8 + 8");
    assert_eq!((pairing.unmatched(), finished.len()), (1, 0));
}

#[test]
fn a_bio_is_in_flight_until_it_ends() {
    let text = "1 bio_queue 7,0 R 8 + 8 dd-1";
    let (pairing, _) = paired(Layer::Bio, Start::Issue, text);
    let flights: Vec<_> = pairing
        .in_flight()
        .map(|io| (io.sector, io.since_ns))
        .collect();
    assert_eq!(flights, [(8, 1000)]);
}
