//! A few seeds of the swarm: equal seeds give equal runs, and there is no violation.

use dashpot_sim::swarm::run_seed;

#[test]
fn nothing_is_violated() {
    for seed in 0..1_000 {
        if let Err(violation) = run_seed(seed) {
            panic!("seed {seed}: {violation}");
        }
    }
}

#[test]
fn equal_seeds_give_equal_runs() {
    assert_eq!(run_seed(7), run_seed(7));
    assert_ne!(run_seed(7), run_seed(8));
}
