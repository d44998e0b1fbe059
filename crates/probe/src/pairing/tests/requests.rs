//! Tests of requests, with a short history for each behaviour of the kernel.

use super::history::{LOOP0, disk, lines, paired, records, requests, take};
use crate::device::Layer;
use crate::io::Owner;
use crate::options::Start;
use crate::pairing::Pairing;

const ONE: &str = "
    1 bio_queue 7,0 WS 8 + 8 dd-42
    3 issue 7,0 WS 8 + 8
    9 complete 7,0 WS 8 + 8";

#[test]
fn a_request_is_timed_from_its_queueing_and_its_issue() {
    assert_eq!(requests(ONE), ["WS 8 + 4096: 1 3 9"]);
}

#[test]
fn queueing_is_told_only_where_it_is_the_start() {
    let (_, finished) = paired(Layer::Request, Start::Issue, ONE);
    assert_eq!(lines(&finished), ["WS 8 + 4096: - 3 9"]);
}

#[test]
fn whoever_queued_the_bio_asked_for_it() {
    let (_, finished) = paired(Layer::Request, Start::Issue, ONE);
    let submitter = finished[0].submitter.clone().expect("seen");
    assert_eq!((submitter.tid, submitter.thread.bytes()), (42, &b"dd"[..]));
}

#[test]
fn what_was_queued_before_the_watch_has_no_such_moment_and_no_submitter() {
    let text = "3 issue 7,0 R 8 + 8\n 9 complete 7,0 R 8 + 8";
    let (_, finished) = paired(Layer::Request, Start::Queue, text);
    assert_eq!(lines(&finished), ["R 8 + 4096: - 3 9"]);
    assert_eq!(finished[0].submitter, None);
}

#[test]
fn sectors_that_there_cannot_be_are_passed_over() {
    for what in [
        "bio_queue 7,0 R END + 8 dd-1",
        "issue 7,0 R END + 8",
        "requeue 7,0 R END + 8",
    ] {
        let text = "
            1 WHAT
            2 split 7,0 R END / 3
            3 complete 7,0 R END + 4";
        let text = text.replace("WHAT", what);
        let text = text.replace("END", &(u64::MAX - 3).to_string());
        assert_eq!(requests(&text), [""; 0], "{what}");
    }
}

#[test]
fn an_io_of_hours_is_not_forgotten() {
    let text = "3 issue 7,0 R 8 + 8\n 36000000003 complete 7,0 R 8 + 8";
    assert_eq!(requests(text), ["R 8 + 4096: - 3 36000000003"]);
}

#[test]
fn two_at_one_sector_end_in_the_order_of_their_beginning() {
    let text = "
        1 issue 7,0 R 8 + 8
        2 issue 7,0 R 8 + 8
        5 complete 7,0 R 8 + 8
        9 complete 7,0 R 8 + 8";
    assert_eq!(requests(text), ["R 8 + 4096: - 1 5", "R 8 + 4096: - 2 9"]);
}

#[test]
fn size_and_operation_tell_those_at_one_sector_apart() {
    let text = "
        1 issue 7,0 R 8 + 8
        2 issue 7,0 WS 8 + 8
        3 issue 7,0 R 8 + 16
        5 complete 7,0 R 8 + 16
        6 complete 7,0 WS 8 + 8
        7 complete 7,0 R 8 + 8";
    let ends = [
        "R 8 + 8192: - 3 5",
        "WS 8 + 4096: - 2 6",
        "R 8 + 4096: - 1 7",
    ];
    assert_eq!(requests(text), ends);
}

#[test]
fn a_request_ends_with_its_last_part() {
    let text = "
        1 issue 7,0 W 0 + 32
        5 complete 7,0 W 0 + 8
        6 complete 7,0 W 8 + 16
        9 complete 7,0 W 24 + 8";
    assert_eq!(requests(text), ["W 0 + 16384: - 1 9"]);
}

#[test]
fn the_error_of_a_part_is_that_of_the_whole() {
    let text = "
        1 issue 7,0 W 0 + 16
        5 complete 7,0 W 0 + 8 -5
        6 complete 7,0 W 8 + 8";
    assert_eq!(requests(text), ["W 0 + 8192: - 1 6 error 5"]);
}

#[test]
fn what_the_driver_gave_back_is_timed_from_its_first_issue() {
    let text = "
        1 bio_queue 7,0 W 0 + 16 dd-1
        2 issue 7,0 W 0 + 16
        3 requeue 7,0 W 0 + 16
        4 issue 7,0 W 0 + 16
        5 requeue 7,0 W 0 + 16
        6 issue 7,0 W 0 + 16
        9 complete 7,0 W 0 + 16";
    assert_eq!(requests(text), ["W 0 + 8192: 1 2 9 requeued 2"]);
}

#[test]
fn a_driver_may_give_back_what_it_never_began() {
    let text = "
        1 bio_queue 7,0 W 0 + 16 dd-1
        3 requeue 7,0 W 0 + 16
        4 issue 7,0 W 0 + 16
        9 complete 7,0 W 0 + 16";
    assert_eq!(requests(text), ["W 0 + 8192: 1 4 9 requeued 1"]);
}

#[test]
fn the_rest_of_a_request_can_be_given_back() {
    let text = "
        2 issue 7,0 W 0 + 16
        3 complete 7,0 W 0 + 8
        4 requeue 7,0 W 8 + 8
        5 issue 7,0 W 8 + 8
        9 complete 7,0 W 8 + 8";
    assert_eq!(requests(text), ["W 0 + 8192: - 2 9 requeued 1"]);
}

#[test]
fn a_request_was_queued_when_its_oldest_bio_was() {
    let text = "
        1 bio_queue 7,0 W 16 + 8 dd-1
        2 bio_queue 7,0 W 24 + 8 dd-2
        3 bio_queue 7,0 W 8 + 8 dd-3
        4 bio_queue 7,0 W 40 + 8 dd-4
        5 issue 7,0 W 8 + 24
        9 complete 7,0 W 8 + 24";
    let (pairing, finished) = paired(Layer::Request, Start::Queue, text);
    assert_eq!(lines(&finished), ["W 8 + 12288: 1 5 9 merged 2"]);
    let submitter = finished[0]
        .submitter
        .as_ref()
        .map(|submitter| submitter.tid);
    assert_eq!(submitter, Some(1));
    assert_eq!(sectors_in_flight(&pairing), [40]);
}

#[test]
fn the_parts_of_a_split_bio_were_queued_when_it_was() {
    let text = "
        1 bio_queue 7,0 W 0 + 40 dd-1
        2 split 7,0 W 0 / 16
        3 split 7,0 W 16 / 32
        4 issue 7,0 W 16 + 16
        5 issue 7,0 W 32 + 8
        6 issue 7,0 W 0 + 16
        7 complete 7,0 W 0 + 16
        8 complete 7,0 W 16 + 16
        9 complete 7,0 W 32 + 8";
    let parts = [
        "W 0 + 8192: 1 6 7",
        "W 16 + 8192: 1 4 8",
        "W 32 + 4096: 1 5 9",
    ];
    assert_eq!(requests(text), parts);
}

#[test]
fn of_two_bios_at_one_sector_the_longer_is_split() {
    let text = "
        1 bio_queue 7,0 R 0 + 8 dd-1
        2 bio_queue 7,0 R 0 + 16 dd-2
        3 split 7,0 R 0 / 8
        4 issue 7,0 R 8 + 8
        5 issue 7,0 R 0 + 8
        6 issue 7,0 R 0 + 8
        7 complete 7,0 R 8 + 8
        8 complete 7,0 R 0 + 8
        9 complete 7,0 R 0 + 8";
    let parts = [
        "R 8 + 4096: 2 4 7",
        "R 0 + 4096: 1 5 8",
        "R 0 + 4096: 2 6 9",
    ];
    assert_eq!(requests(text), parts);
}

#[test]
fn a_part_of_a_split_bio_may_join_another_bio() {
    let text = "
        1 bio_queue 7,0 W 0 + 8 dd-1
        2 bio_queue 7,0 W 8 + 16 dd-1
        3 split 7,0 W 8 / 16
        4 issue 7,0 W 16 + 8
        5 issue 7,0 W 0 + 16
        8 complete 7,0 W 16 + 8
        9 complete 7,0 W 0 + 16";
    assert_eq!(
        requests(text),
        ["W 16 + 4096: 2 4 8", "W 0 + 8192: 1 5 9 merged 1"]
    );
}

#[test]
fn a_bio_that_got_no_request_is_no_io() {
    let text = "
        1 bio_queue 7,0 R 0 + 8 fio-1
        2 bio_complete 7,0 R 0 + 8 -11
        3 bio_queue 7,0 R 0 + 8 iou-wrk-1
        4 issue 7,0 R 0 + 8
        9 complete 7,0 R 0 + 8";
    assert_eq!(requests(text), ["R 0 + 4096: 3 4 9"]);
    let refused = "1 bio_queue 7,0 R 0 + 8 fio-1\n 2 bio_complete 7,0 R 0 + 8 -11";
    let (pairing, _) = paired(Layer::Request, Start::Queue, refused);
    assert_eq!((pairing.unmatched(), pairing.in_flight().count()), (0, 0));
}

#[test]
fn a_request_with_a_bio_of_unknown_age_is_of_unknown_age() {
    for seen in [0, 8, 16] {
        let text = format!(
            "
            1 bio_queue 7,0 W {seen} + 8 dd-1
            5 issue 7,0 W 0 + 24
            9 complete 7,0 W 0 + 24"
        );
        let (pairing, finished) = paired(Layer::Request, Start::Queue, &text);
        assert_eq!(finished[0].queued_ns, None);
        assert_eq!((finished[0].sector, finished[0].bytes), (0, 24 * 512));
        assert_eq!(pairing.in_flight().count(), 0);
    }
}

#[test]
fn what_was_given_back_may_be_issued_with_what_has_joined_it() {
    let text = "
        1 bio_queue 7,0 W 8 + 8 dd-1
        2 issue 7,0 W 8 + 8
        3 requeue 7,0 W 8 + 8
        4 bio_queue 7,0 W 0 + 8 dd-2
        5 issue 7,0 W 0 + 16
        9 complete 7,0 W 0 + 16";
    assert_eq!(requests(text), ["W 0 + 8192: 1 2 9 merged 1 requeued 1"]);
}

#[test]
fn what_joined_a_request_of_unknown_age_does_not_make_it_younger() {
    let text = "
        1 issue 7,0 W 0 + 8
        2 requeue 7,0 W 0 + 8
        3 bio_queue 7,0 W 8 + 8 dd-1
        5 issue 7,0 W 0 + 16
        9 complete 7,0 W 0 + 16";
    assert_eq!(requests(text), ["W 0 + 8192: - 1 9 merged 1 requeued 1"]);
}

#[test]
fn discards_merge_without_being_neighbours() {
    let text = "
        1 bio_queue 7,0 D 0 + 8 dd-1
        2 bio_queue 7,0 D 64 + 8 dd-1
        5 issue 7,0 D 0 + 16
        9 complete 7,0 D 0 + 16";
    let (pairing, finished) = paired(Layer::Request, Start::Queue, text);
    assert_eq!(lines(&finished), ["D 0 + 8192: 1 5 9 merged 1"]);
    assert_eq!(pairing.in_flight().count(), 0);
}

#[test]
fn a_flush_is_one_io_whoever_waits_for_it() {
    let text = "
        1 bio_queue 7,0 FWS 0 + 0 sync-1
        2 bio_queue 7,0 FWS 0 + 0 sync-2
        3 issue 7,0 FF 0 + 0
        9 complete 7,0 FF 18446744073709551615 + 0
        9 complete 7,0 WS 0 + 0
        9 complete 7,0 WS 0 + 0";
    let (pairing, finished) = paired(Layer::Request, Start::Queue, text);
    assert_eq!(lines(&finished), ["FF 0 + 0: - 3 9"]);
    assert_eq!((pairing.unmatched(), pairing.in_flight().count()), (0, 0));
}

#[test]
fn a_write_with_flushes_around_it_ends_once() {
    let text = "
        1 bio_queue 7,0 FWFS 0 + 8 dd-1
        2 issue 7,0 FF 0 + 0
        3 complete 7,0 FF 18446744073709551615 + 0
        4 issue 7,0 WS 0 + 8
        5 complete 7,0 WS 0 + 8
        6 issue 7,0 FF 0 + 0
        7 complete 7,0 FF 18446744073709551615 + 0
        7 complete 7,0 WS 0 + 0";
    let (pairing, finished) = paired(Layer::Request, Start::Queue, text);
    assert_eq!(
        lines(&finished),
        ["FF 0 + 0: - 2 3", "WS 0 + 4096: 1 4 5", "FF 0 + 0: - 6 7"]
    );
    assert_eq!(pairing.unmatched(), 0);
}

#[test]
fn the_end_of_a_flush_does_not_end_a_write_at_its_sector() {
    let text = "
        1 issue 7,0 WS 0 + 8
        2 complete 7,0 WS 0 + 0
        9 complete 7,0 WS 0 + 8";
    assert_eq!(requests(text), ["WS 0 + 4096: - 1 9"]);
}

#[test]
fn a_command_of_its_own_is_known_by_its_letter_alone() {
    let text = "
        1 issue 7,0 N 0 + 0 4096
        9 complete 7,0 N 18446744073709551615 + 8";
    assert_eq!(requests(text), ["N 0 + 4096: - 1 9"]);
}

#[test]
fn an_end_without_a_beginning_is_counted() {
    let text = "
        1 complete 7,0 R 8 + 8
        2 bio_queue 7,0 R 16 + 8 dd-1
        3 complete 7,0 R 16 + 8 -5";
    let (pairing, finished) = paired(Layer::Request, Start::Queue, text);
    assert_eq!(lines(&finished), [""; 0]);
    assert_eq!((pairing.unmatched(), pairing.in_flight().count()), (2, 0));
}

#[test]
fn what_waits_is_in_flight_if_queueing_is_watched() {
    let text = "
        1 bio_queue 7,0 R 8 + 8 dd-1
        2 bio_queue 7,0 R 64 + 8 dd-1
        3 issue 7,0 R 64 + 8";
    let flights = |start| {
        let (pairing, _) = paired(Layer::Request, start, text);
        let flight = pairing
            .in_flight()
            .map(|io| (io.sector, io.since_ns / 1000, io.issued_ns.is_some()));
        let mut flights: Vec<_> = flight.collect();
        flights.sort_unstable();
        flights
    };
    assert_eq!(flights(Start::Queue), [(8, 1, false), (64, 2, true)]);
    assert_eq!(flights(Start::Issue), [(64, 3, true)]);
}

fn sectors_in_flight(pairing: &Pairing) -> Vec<u64> {
    pairing.in_flight().map(|io| io.sector).collect()
}

#[test]
fn disks_do_not_mix_and_others_are_ignored() {
    let text = "
        1 issue 7,0 R 8 + 8
        2 issue 7,1 R 8 + 8
        3 issue 7,2 R 8 + 8
        5 complete 7,1 R 8 + 8
        6 complete 7,2 R 8 + 8
        9 complete 7,0 R 8 + 8";
    let other = crate::device::Number { major: 7, minor: 1 };
    let devices = [disk(LOOP0, Layer::Request), disk(other, Layer::Request)];
    let mut pairing = Pairing::new(&devices, Start::Issue);
    let finished = take(&mut pairing, text);
    assert_eq!(lines(&finished), ["R 8 + 4096: - 2 5", "R 8 + 4096: - 1 9"]);
}

#[test]
fn a_busy_pairing_leaves_nothing_behind() {
    let mut pairing = Pairing::new(&[disk(LOOP0, Layer::Request)], Start::Queue);
    let mut finished = Vec::new();
    for round in 0..10_000 {
        for mut record in records(ONE) {
            record.sector = round % 7 * 8;
            finished.extend(pairing.take(&record, Owner::default()));
        }
    }
    assert_eq!((finished.len(), pairing.in_flight().count()), (10_000, 0));
}
