//! The steps of a shard that writes to a new RAM disk, beside the first touch of a small page, by turns:
//! `cargo test --release -p dashpot-export --lib store::steps -- --ignored --nocapture`.
//!
//! It prints a line of JSON for each GiB. It keeps the memory until the end, so the later lines tell of memory
//! that fewer programs have used before.

use dashpot_engine::{Duration, Random};
use dashpot_sys::{PageSize, Pages};

use super::ram::Ram;
use crate::clock;

const PAGES: usize = (1 << 30) / 4096;

/// The time of each step by the clock and of the thread's CPU, in nanoseconds.
#[derive(Default)]
struct Steps {
    passed: Vec<u64>,
    cpu: Vec<u64>,
}

impl Steps {
    fn add(&mut self, (passed, cpu): (Duration, Duration)) {
        self.passed.push(passed.as_nanos());
        self.cpu.push(cpu.as_nanos());
    }

    fn json(mut self) -> String {
        let [passed, cpu] = [&mut self.passed, &mut self.cpu].map(|times| {
            times.sort_unstable();
            let at = |per_100_000: usize| times[(times.len() - 1) * per_100_000 / 100_000];
            let [p50, p99, p999, max] = [50_000, 99_000, 99_900, 100_000].map(at);
            format!(r#"{{"p50_ns": {p50}, "p99_ns": {p99}, "p999_ns": {p999}, "max_ns": {max}}}"#)
        });
        format!(r#"{{"passed": {passed}, "cpu": {cpu}}}"#)
    }
}

fn time(step: impl FnOnce()) -> (Duration, Duration) {
    let (cpu, begun) = (clock::cpu_time(), clock::now());
    step();
    let passed = clock::now().since(begun);
    (passed, clock::cpu_time() - cpu)
}

#[test]
#[ignore = "it measures, and asserts nothing about time"]
fn steps_of_a_new_disk() {
    let gib = std::env::var("STEPS_GIB").map_or(1, |gib| gib.parse().expect("a number"));
    let mut kept = Vec::new();
    for seed in 0..gib {
        let (mut ram, mut random) = (Ram::new(), Random::new(seed));
        let mut pages = Pages::map(PAGES * 4096, PageSize::Small).expect("memory");
        let [mut touches, mut writes, mut moves, mut again] = [(); 4].map(|()| Steps::default());
        let mut order: Vec<usize> = (0..PAGES).collect();
        for at in (1..PAGES).rev() {
            order.swap(at, random.below(at as u64 + 1) as usize);
        }
        let bytes = [1; 4096];
        for page in &order {
            touches.add(time(|| {
                pages[page * 4096..][..4096].copy_from_slice(&bytes);
            }));
            let before = ram.in_huge_pages();
            let took = time(|| ram.write(*page as u64 * 4096, &bytes));
            let is_move = ram.in_huge_pages() != before;
            let steps = if is_move { &mut moves } else { &mut writes };
            steps.add(took);
        }
        for page in &order {
            again.add(time(|| ram.write(*page as u64 * 4096, &bytes)));
        }
        let [touches, writes, moves, again] = [touches, writes, moves, again].map(Steps::json);
        println!(
            r#"{{"touches": {touches}, "writes": {writes}, "moves": {moves}, "again": {again}}}"#
        );
        kept.push((ram, pages));
    }
}
