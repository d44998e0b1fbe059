//! `view`: shows a recording on the page.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dashpot_cli::ViewArgs;
use dashpot_output::print;

use super::{Page, RecordedMemory};
use crate::signals::stop_on_signals;

/// Serves the page of a recording until the user ends the program.
pub fn view(args: &ViewArgs) -> anyhow::Result<()> {
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
