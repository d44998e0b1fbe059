//! Parses a description of records: whatever the description says, each field is read within the record or
//! not at all.

#![no_main]

use dashpot_probe::tracefs::format::Format;
use dashpot_probe::tracefs::page::{Cursor, Layout};
use libfuzzer_sys::fuzz_target;

const RECORD: [u8; 64] = [0xa5; 64];
const FIELDS: [&str; 5] = ["dev", "sector", "rwbs", "common_pid", "error"];

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    if let Ok(format) = Format::parse(&text) {
        for field in FIELDS.iter().flat_map(|name| format.field(name)) {
            let is_within = field
                .offset
                .checked_add(field.size)
                .is_some_and(|end| end <= 64);
            assert_eq!(field.bytes(&RECORD).is_some(), is_within);
            assert!(is_within || field.number(&RECORD).is_none());
        }
    }
    if let Ok(layout) = Layout::parse(&text) {
        let page = vec![0xa5; layout.size.min(1 << 16)];
        if let Ok(mut cursor) = Cursor::new(&layout, &page) {
            while let Ok(Some(_)) = cursor.next(&page) {}
        }
    }
});
