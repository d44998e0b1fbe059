//! Parses a table line of the device mapper: the parser refuses a text with an error of one line, or returns a table
//! with valid rules. Printed and parsed again, the table stays the same.

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
