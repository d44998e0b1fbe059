//! The processes in recordings of an older dashpot, which are threads.

use std::sync::Once;

use dashpot_export::complain_lines;
use dashpot_recording::Selected;

/// Says, once, that some processes of the answer are threads.
pub(super) fn tell_threads(block: &Selected) {
    if block.has_threads_as_processes() {
        SAID.call_once(|| complain_lines(NOTE));
    }
}

static SAID: Once = Once::new();

const NOTE: &str = "\
An older dashpot recorded these I/Os, or some of them. Their process and pid are the
name and the id of the thread; their thread and tid are unknown.";
