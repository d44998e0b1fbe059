//! dashpot: a slow disk you control, and a microscope for storage latency.

mod api;
mod cli;
mod client;
mod commands;
mod daemon;
mod doctor;
mod lab;
mod report;
mod spec;
mod zinject;

fn main() {}
