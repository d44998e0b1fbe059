//! Tests what happens to I/Os in flight when the kernel loses events.

use super::history::{LOOP0, disk, lines, records, take};
use crate::device::Layer;
use crate::io::Owner;
use crate::options::Start;
use crate::pairing::Pairing;

fn pairing(layer: Layer) -> Pairing {
    Pairing::new(&[disk(LOOP0, layer)], Start::Queue)
}

#[test]
fn a_lost_end_does_not_give_a_latency_of_90_seconds() {
    let mut pairing = pairing(Layer::Request);
    take(&mut pairing, "1 issue 7,0 W 8 + 8");
    pairing.lost(50_000);
    let text = "
        90000000 issue 7,0 W 8 + 8
        90000007 complete 7,0 W 8 + 8";
    assert_eq!(
        lines(&take(&mut pairing, text)),
        ["W 8 + 4096: - 90000000 90000007"]
    );
    assert_eq!((pairing.dropped(), pairing.in_flight().count()), (1, 0));
}

#[test]
fn an_end_that_may_be_anothers_gives_no_latency() {
    for (layer, began, ended) in [
        (Layer::Request, "issue", "complete"),
        (Layer::Bio, "bio_queue", "bio_complete"),
    ] {
        let mut pairing = pairing(layer);
        let who = if layer == Layer::Bio { " dd-1" } else { "" };
        take(&mut pairing, &format!("1 {began} 7,0 W 8 + 8{who}"));
        pairing.lost(50_000);
        assert_eq!(pairing.in_flight().count(), 1);
        let finished = take(&mut pairing, &format!("70 {ended} 7,0 W 8 + 8"));
        assert_eq!(lines(&finished), [""; 0]);
        assert_eq!((pairing.dropped(), pairing.in_flight().count()), (1, 0));
    }
}

#[test]
fn what_is_given_back_is_no_less_in_doubt() {
    let mut pairing = pairing(Layer::Request);
    take(&mut pairing, "1 issue 7,0 W 8 + 8");
    pairing.lost(50_000);
    let text = "
        61 requeue 7,0 W 8 + 8
        62 issue 7,0 W 8 + 8
        70 complete 7,0 W 8 + 8";
    assert_eq!(lines(&take(&mut pairing, text)), [""; 0]);
    assert_eq!((pairing.dropped(), pairing.in_flight().count()), (1, 0));
}

#[test]
fn a_discard_that_may_be_anothers_is_not_merged() {
    let mut pairing = pairing(Layer::Request);
    take(&mut pairing, "1 bio_queue 7,0 D 800 + 8 dd-1");
    pairing.lost(50_000);
    let text = "
        60 bio_queue 7,0 D 8 + 8 dd-1
        61 issue 7,0 D 8 + 16
        70 complete 7,0 D 8 + 16";
    let finished = take(&mut pairing, text);
    assert_eq!(finished[0].queued_ns, None);
}

#[test]
fn a_queueing_that_may_be_anothers_is_not_used() {
    let mut pairing = pairing(Layer::Request);
    take(&mut pairing, "1 bio_queue 7,0 W 8 + 8 dd-1");
    pairing.lost(50_000);
    let text = "
        91 issue 7,0 W 8 + 8
        92 complete 7,0 W 8 + 8";
    assert_eq!(lines(&take(&mut pairing, text)), ["W 8 + 4096: - 91 92"]);
}

#[test]
fn what_began_after_a_loss_is_not_in_doubt() {
    let mut pairing = pairing(Layer::Request);
    pairing.lost(50_000);
    let text = "
        51 issue 7,0 R 8 + 8
        52 issue 7,0 R 8 + 8
        60 complete 7,0 R 8 + 8
        61 complete 7,0 R 8 + 8";
    assert_eq!(
        lines(&take(&mut pairing, text)),
        ["R 8 + 4096: - 51 60", "R 8 + 4096: - 52 61"]
    );
}

#[test]
fn a_part_that_ended_since_does_not_take_the_doubt_away() {
    let mut pairing = pairing(Layer::Request);
    take(&mut pairing, "1 issue 7,0 W 8 + 16");
    pairing.lost(50_000);
    let text = "
        60 complete 7,0 W 8 + 8
        61 issue 7,0 W 16 + 8
        62 complete 7,0 W 16 + 8
        63 complete 7,0 W 16 + 8";
    let finished = take(&mut pairing, text);
    assert_eq!(lines(&finished), ["W 16 + 4096: - 61 62"]);
    assert_eq!((pairing.dropped(), pairing.unmatched()), (1, 1));
}

#[test]
fn a_lost_issue_does_not_leave_its_queueing_to_another() {
    let mut pairing = pairing(Layer::Request);
    take(&mut pairing, "1 bio_queue 7,0 W 8 + 8 dd-1");
    pairing.lost(50_000);
    let text = "
        90 bio_queue 7,0 W 8 + 8 dd-1
        91 issue 7,0 W 8 + 8
        92 complete 7,0 W 8 + 8";
    assert_eq!(lines(&take(&mut pairing, text)), ["W 8 + 4096: 90 91 92"]);
    assert_eq!((pairing.dropped(), pairing.in_flight().count()), (1, 0));
}

#[test]
fn a_bio_in_doubt_gives_way_as_well() {
    let mut pairing = pairing(Layer::Bio);
    take(&mut pairing, "1 bio_queue 7,0 W 8 + 8 dd-1");
    pairing.lost(50_000);
    let text = "
        90 bio_queue 7,0 W 8 + 8 dd-1
        92 bio_complete 7,0 W 8 + 8";
    assert_eq!(lines(&take(&mut pairing, text)), ["W 8 + 4096: 90 90 92"]);
    assert_eq!(pairing.dropped(), 1);
}

#[test]
fn what_may_have_ended_is_doubtful_until_it_is_given_up() {
    for layer in [Layer::Request, Layer::Bio] {
        let mut pairing = pairing(layer);
        let text = "
            1 bio_queue 7,0 W 8 + 8 dd-1
            2 issue 7,0 W 8 + 8
            20 bio_queue 7,0 W 16 + 8 dd-1";
        take(&mut pairing, text);
        pairing.lost(50_000);
        take(&mut pairing, "60 bio_queue 7,0 W 24 + 8 dd-1");
        let doubtful = |pairing: &Pairing| {
            let flights = pairing.in_flight();
            let mut flights: Vec<_> = flights.map(|io| (io.sector, io.doubtful)).collect();
            flights.sort_unstable();
            flights
        };
        assert_eq!(doubtful(&pairing), [(8, true), (16, true), (24, false)]);
        let other = crate::device::Number { major: 7, minor: 1 };
        pairing.give_up(other, 40_000);
        pairing.give_up(LOOP0, 20_000);
        assert_eq!(doubtful(&pairing), [(16, true), (24, false)]);
        pairing.give_up(LOOP0, 90_000);
        assert_eq!(doubtful(&pairing), [(24, false)]);
        assert_eq!(pairing.dropped(), 2);
    }
}

#[test]
fn memory_is_bounded_and_what_is_in_doubt_goes_first() {
    let most = 1 << 18;
    let mut pairing = pairing(Layer::Request);
    let mut finished = Vec::new();
    let mut issue = records("1 issue 7,0 W 8 + 8")[0];
    for number in 0..=most {
        issue.sector = number * 8;
        finished.extend(pairing.take(&issue, Owner::default()));
    }
    assert_eq!(
        (pairing.in_flight().count() as u64, pairing.dropped()),
        (most, 1)
    );
    pairing.lost(50_000);
    let text = "
        60 issue 7,0 W 4 + 4
        70 complete 7,0 W 4 + 4";
    assert_eq!(lines(&take(&mut pairing, text)), ["W 4 + 2048: - 60 70"]);
    assert_eq!(
        (pairing.in_flight().count() as u64, pairing.dropped()),
        (0, 1 + most)
    );
}
