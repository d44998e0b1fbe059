use super::{Field, Format, FormatError};
use crate::tracefs::fixtures::{KERNELS, format};

fn field(offset: usize, size: usize, signed: bool) -> Field {
    Field {
        name: "a".into(),
        offset,
        size,
        signed,
    }
}

#[test]
fn fields_are_found_by_name() {
    let format = format(KERNELS[2], "block_rq_issue").expect("the event");
    assert_eq!(format.id, 2104);
    let rwbs = format.field("rwbs").expect("the field");
    assert_eq!((rwbs.offset, rwbs.size, rwbs.signed), (34, 10, false));
    let pid = format.field("common_pid").expect("the field");
    assert_eq!((pid.offset, pid.size, pid.signed), (4, 4, true));
    assert_eq!(format.field("errors"), Err(FormatError::NoField("errors")));
    assert_eq!(
        format.field("cmd"),
        Err(FormatError::NoField("cmd")),
        "its bytes are elsewhere"
    );
}

#[test]
fn what_is_no_description_is_refused() {
    assert_eq!(Format::parse(""), Err(FormatError::NoId));
    assert_eq!(Format::parse("ID: 70000\n"), Err(FormatError::NoId));
    for line in [
        "field:",
        "field:;",
        "field:int a;",
        "field:int a;\toffset:8;",
        "field:int a;\toffset:8;\tsize:-4;",
        "field:int a;\toffset:x;\tsize:4;",
    ] {
        let text = format!("ID: 7\nformat:\n\t{line}\n");
        assert_eq!(Format::parse(&text), Err(FormatError::Line(line.into())));
    }
}

#[test]
fn numbers_have_a_size_and_a_sign() {
    let record = 0xfedc_ba98_7654_3210_u64.to_le_bytes();
    if cfg!(target_endian = "big") {
        return;
    }
    assert_eq!(
        field(0, 8, false).number(&record),
        Some(0xfedc_ba98_7654_3210)
    );
    assert_eq!(field(0, 4, true).number(&record), Some(0x7654_3210));
    assert_eq!(
        field(4, 4, true).number(&record),
        Some(0xffff_ffff_fedc_ba98)
    );
    assert_eq!(field(6, 2, false).number(&record), Some(0xfedc));
    assert_eq!(field(7, 1, true).number(&record), Some(u64::MAX - 1));
    for (offset, size) in [(0, 3), (0, 0), (1, 8), (8, 1), (usize::MAX, 4)] {
        assert_eq!(
            field(offset, size, true).number(&record),
            None,
            "{size} at {offset}"
        );
    }
}
