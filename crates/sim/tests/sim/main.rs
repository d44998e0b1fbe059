//! Whole simulations, through the public interface.

mod common;
mod lanes;
mod layout;
mod swarm;
mod throttle;
mod told;
mod workloads;
