//! Reads a page of the kernel's ring buffer: for any bytes, the page's events lie within the page, one after the
//! other, and their number is finite.
//!
//! The first byte chooses a kernel of 32 or of 64 bits.

#![no_main]

use dashpot_probe::tracefs::page::{Cursor, Layout};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, page)) = data.split_first() else {
        return;
    };
    let layout = layout(if choice & 1 == 0 { 4 } else { 8 });
    let Ok(mut cursor) = Cursor::new(&layout, page) else {
        return;
    };
    let mut before = page.as_ptr();
    while let Ok(Some(event)) = cursor.next(page) {
        let range = event.record.as_ptr_range();
        assert!(before < range.start && range.end <= page.as_ptr_range().end);
        before = range.end;
    }
});

fn layout(commit: usize) -> Layout {
    let data = 8 + commit;
    let text = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{commit};\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:{};\tsigned:1;\n",
        4096 - data
    );
    Layout::parse(&text).expect("a page")
}
