//! `view`: shows a recording on the page.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::load::stop_on_signals;
use super::output::print;
use super::page::{Page, RecordedMemory};
use crate::cli::ViewArgs;

/// Serves the page of a recording until the user ends the program.
pub(super) fn view(args: &ViewArgs) -> anyhow::Result<()> {
    let interrupted = stop_on_signals()?;
    let memory = RecordedMemory::open(&args.recording)?;
    let page = Page::start(&args.page, Arc::new(memory))?;
    print(&format!("page  {}\n", page.url))?;
    while !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(NAP);
    }
    Ok(())
}

const NAP: Duration = Duration::from_millis(20);
