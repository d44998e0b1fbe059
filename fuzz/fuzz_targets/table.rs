//! A table line of the device mapper: whatever the text is, it is refused in one line, or it is a table
//! that reads back as it is written, and whose rules are rules.

#![no_main]

use dashpot_rules::dm::parse_table;
use dashpot_rules::parse_injection;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_table(text) {
        Ok(table) => {
            assert_eq!(parse_table(&table.to_string()).as_ref(), Ok(&table));
            for (_, words) in table.rules() {
                parse_injection(&words).expect("a rule");
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
