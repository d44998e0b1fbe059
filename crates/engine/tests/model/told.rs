//! Tests that the engine knows what clients had been told when a zio arrived, also within one reading of the
//! clock.

use dashpot_engine::{Action, ClientId, DiskConfig, Engine, Input, Instant, Op, Zio, ZioId};

use crate::machine::DISK;

fn arrive(engine: &mut Engine, id: u32, op: Op) {
    let zio = Zio {
        id: ZioId(id),
        device: DISK,
        client: ClientId(1),
        op,
        fua: false,
        call: None,
        offset: 0,
        length: 0,
        arrived: Instant::ZERO,
    };
    let mut actions = Vec::new();
    engine.step(Instant::ZERO, Input::Submit(zio), &mut actions);
    assert!(matches!(actions[..], [Action::Start(_)]));
}

#[test]
fn the_order_of_results_and_arrivals_is_known_at_one_time() {
    let mut engine = Engine::new();
    engine.add_disk(DiskConfig { seed: 1 });
    arrive(&mut engine, 0, Op::Flush);
    let first = engine.tell();
    arrive(&mut engine, 1, Op::Flush);
    let second = engine.tell();
    let before = [0, 1].map(|id| engine.told_before(ZioId(id)).unwrap());
    assert!(before[0] < first && first <= before[1] && before[1] < second);
}
