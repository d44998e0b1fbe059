//! Whole simulations, through what the crate makes public.

mod common;
mod lanes;
mod swarm;
mod throttle;
mod told;
mod workloads;
