use proptest::prelude::*;

use super::parse_table;
use crate::dm::{Delay, Medium, Part, Table, Target};
use crate::parse_injection;

fn said(text: &str) -> String {
    parse_table(text).unwrap_err().to_string()
}

#[test]
fn a_line_as_dm_delay_takes_it() {
    let delays = |text| match parse_table(text).unwrap().target {
        Target::Delay(delay) => delay.delays(),
        Target::Error => panic!("no delay"),
    };
    assert_eq!(delays("0 2048 delay /dev/vdb 0 500"), [500; 3]);
    assert_eq!(delays("0 2048 delay 8:32 0 50 8:32 0 100"), [50, 100, 100]);
    assert_eq!(
        delays("\n# seed\n 0 8 delay ./f 0 1 ./f 0 2\t./f 0 3 \n"),
        [1, 2, 3]
    );
    let table = parse_table("0 2048 delay ram:1M 0 0 ram:1M 0 7").unwrap();
    assert_eq!(table.medium(), Some(&Medium::Ram(1 << 20)));
    let rules = table.rules();
    let words = "-D 7ms -T write,trim,zero --mode add".to_owned();
    assert_eq!(rules[0], ("dm-write", words));
    assert_eq!(rules.len(), 2, "no delay is not a rule");
    let error = parse_table("0 16 error").unwrap();
    assert_eq!((error.target, error.sectors), (Target::Error, 16));
}

#[test]
fn a_refusal_names_the_word() {
    for (text, parts) in [
        ("", "word 1 is missing, because the table is empty"),
        ("0", "word 2 is missing, the number of sectors"),
        ("0 2048", "word 3 is missing, the target"),
        (
            "8 2048 delay /dev/a 0 1",
            "word 1, '8': a table of one line begins at sector 0",
        ),
        ("0 0 error", "word 2, '0'"),
        (
            "0 1M error",
            "word 2, '1M': no number of sectors: give a whole number",
        ),
        ("0 -8 error", "word 2, '-8'"),
        ("0 +8 error", "word 2, '+8'"),
        (
            "0 8 dealy /dev/a 0 1",
            "word 3, 'dealy': no target: did you mean delay?",
        ),
        (
            "0 8 flakey /dev/a 0 1 1",
            "word 3, 'flakey': dashpot has only delay and error",
        ),
        (
            "0 8 delay /dev/a 0",
            "word 6 is missing: delay has 2 arguments here, and takes 3, 6 or 9",
        ),
        ("0 8 delay", "word 4 is missing: delay has 0 arguments here"),
        (
            "0 8 delay /dev/a 0 1 /dev/a",
            "word 8 is missing: delay has 4 arguments here",
        ),
        (
            "0 8 delay /dev/a 0 1 /dev/a 0 1 /dev/a 0 1 now 1",
            "word 13, 'now': delay has 11 arguments here, and takes 3, 6 or 9 (DEVICE SECTOR MS for reads, writes \
             and flushes): leave it out",
        ),
        (
            "0 18014398509481984 error",
            "word 2, '18014398509481984': give a number of sectors from 1",
        ),
        (
            "0 99999999999999999999 error",
            "word 2, '99999999999999999999': no number of sectors",
        ),
        ("x 8 error", "word 1, 'x': no first sector"),
        (
            "0 8 delay vdb 0 1",
            "word 4, 'vdb': name a device by its path",
        ),
        (
            "0 8 delay /dev/a 18014398509481984 1",
            "word 5, '18014398509481984': give a first sector from 0 to 2^54 - 1",
        ),
        (
            "0 8 delay /dev/a 8 1 /dev/a 8 1 /dev/a 16 1",
            "word 11, '16': reads, writes and flushes have one place here: write 8",
        ),
        (
            "0 2048 delay ram:1M 1 1",
            "word 4, 'ram:1M': it has 2048 sectors, and the table needs 2049: enlarge it",
        ),
        (
            "0 8 delay /dev/a 0 1ms",
            "word 6, '1ms': no delay in milliseconds",
        ),
        (
            "0 8 delay /dev/a 0 4294967296",
            "word 6, '4294967296': a delay has at most",
        ),
        (
            "0 8 delay /dev/a 0 1 /dev/b 0 1",
            "word 7, '/dev/b': reads, writes and flushes have one device here",
        ),
        ("0 8 delay /dev/a 0 1 /dev/a 0 x", "word 9, 'x'"),
        (
            "0 8 delay ram:1K 0 1",
            "word 4, 'ram:1K': it has 2 sectors, and the table needs 8",
        ),
        ("0 8 delay ram:x 0 1", "word 4, 'ram:x'"),
        ("0 8 error now", "word 4, 'now': error takes no arguments"),
        ("0 8 error\n8 8 error", "'8 8 error' is a second line"),
        ("0 8 error\n8 8 error", "--range 4K..8K'"),
    ] {
        let message = said(text);
        assert!(message.contains(parts), "{text:?}: {message:?}");
    }
}

fn are_rules(table: &Table) -> bool {
    let words = table.rules().into_iter().map(|(_, words)| words);
    words
        .map(|words| parse_injection(&words))
        .all(|rule| rule.is_ok())
}

fn medium() -> impl Strategy<Value = Medium> {
    prop_oneof![
        "/[a-z0-9/._-]{1,12}".prop_map(Medium::Path),
        (0..1000_u32, 0..1000_u32).prop_map(|(major, minor)| Medium::Numbers(major, minor)),
        Just(Medium::Ram(1 << 40)),
    ]
}

fn table() -> impl Strategy<Value = Table> {
    let delay = (medium(), 0..1000_u64, any::<[u32; 3]>(), 1..=3_usize);
    let delay = delay.prop_map(|(medium, start, delays, parts)| {
        let part = |at: usize| {
            (at < parts).then(|| Part {
                medium: medium.clone(),
                start,
                delay_ms: delays[at],
            })
        };
        Target::Delay(Delay {
            read: part(0).unwrap(),
            write: part(1),
            flush: part(2),
        })
    });
    let target = prop_oneof![Just(Target::Error), delay];
    (1..1_u64 << 31, target).prop_map(|(sectors, target)| Table { sectors, target })
}

proptest! {
    #[test]
    fn a_table_is_read_back_as_it_was_written(table in table()) {
        prop_assert_eq!(parse_table(&table.to_string()), Ok(table.clone()));
        prop_assert!(are_rules(&table));
    }

    #[test]
    fn any_text_is_a_table_or_a_refusal_of_one_short_line(text in "(0 |8 |delay |error |ram:1G |/d |\\PC{0,3}){0,14}") {
        match parse_table(&text) {
            Ok(table) => prop_assert_eq!(parse_table(&table.to_string()), Ok(table)),
            Err(error) => {
                let message = error.to_string();
                prop_assert!(!message.contains('\n') && message.len() < 600, "{}", message);
            }
        }
    }
}
