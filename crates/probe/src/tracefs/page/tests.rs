use proptest::prelude::*;

use super::{Cursor, Layout, PageError};
use crate::tracefs::fixtures::{KERNELS, PageWriter, layout};
use crate::tracefs::format::FormatError;

/// The time and the record of each event.
type Events = Vec<(u64, Vec<u8>)>;

/// A piece of a page's content.
#[derive(Clone, Debug)]
enum Piece {
    Event { delta: u64, words: u32 },
    Extend(u64),
    Stamp(u64),
    Discarded { delta: u64, words: u32 },
}

fn piece() -> impl Strategy<Value = Piece> {
    let delta = 0_u64..1 << 27;
    prop_oneof![
        4 => (delta.clone(), 1_u32..40).prop_map(|(delta, words)| Piece::Event { delta, words }),
        1 => (0_u64..1 << 50).prop_map(Piece::Extend),
        1 => (0_u64..1 << 50).prop_map(Piece::Stamp),
        1 => (1..1_u64 << 27, 1_u32..40)
            .prop_map(|(delta, words)| Piece::Discarded { delta, words }),
    ]
}

/// Times that need more bits than an absolute time in a page has, and smaller times that do not.
fn start_ns() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..1 << 56,
        (1_u64 << 59)..1 << 62,
        ((1_u64 << 60) - (1 << 40))..1 << 60
    ]
}

/// Writes as many pieces as fit, and returns the events that a reader must find.
fn write(start_ns: u64, pieces: &[Piece]) -> (PageWriter, Events) {
    let mut page = PageWriter::new(start_ns);
    let (mut time_ns, mut events) = (start_ns, Vec::new());
    for (number, piece) in pieces.iter().enumerate() {
        if page.length() + 8 + 40 * 4 > 4080 {
            break;
        }
        match *piece {
            Piece::Event { delta, words } => {
                let record = vec![number as u8; words as usize * 4];
                page.event(delta, &record);
                time_ns += delta;
                events.push((time_ns, record));
            }
            Piece::Extend(delta) => {
                page.time(30, delta);
                time_ns += delta;
            }
            Piece::Stamp(ahead) => {
                time_ns += ahead;
                page.time(31, time_ns & ((1 << 59) - 1));
            }
            Piece::Discarded { delta, words } => {
                page.discarded(delta, words);
                time_ns += if delta == 1 { 0 } else { delta };
            }
        }
    }
    (page, events)
}

fn read(layout: &Layout, page: &[u8]) -> (Events, Result<bool, PageError>) {
    let mut events = Vec::new();
    let mut all = || {
        let mut cursor = Cursor::new(layout, page)?;
        while let Some(event) = cursor.next(page)? {
            events.push((event.at_ns, event.record.to_vec()));
        }
        Ok(cursor.missed)
    };
    let end = all();
    (events, end)
}

fn layout_64() -> Layout {
    layout(KERNELS[2])
}

proptest! {
    #[test]
    fn what_was_written_is_read(
        start_ns in start_ns(),
        pieces in prop::collection::vec(piece(), 0..80),
        missed: bool,
    ) {
        let (page, events) = write(start_ns, &pieces);
        prop_assert_eq!(read(&layout_64(), &page.page(missed)), (events, Ok(missed)));
    }

    #[test]
    fn a_page_cut_short_gives_no_other_events(
        pieces in prop::collection::vec(piece(), 1..80),
        cut in 0_usize..4096,
    ) {
        let (page, events) = write(7, &pieces);
        let mut bytes = page.page(false);
        let length = page.length().min(cut);
        bytes[8..16].copy_from_slice(&(length as u64).to_ne_bytes());
        let (found, _) = read(&layout_64(), &bytes);
        prop_assert!(events.starts_with(&found));
    }

    #[test]
    fn any_bytes_are_read_to_an_end(page in prop::collection::vec(any::<u8>(), 0..4096)) {
        for kernel in KERNELS {
            let _ = read(&layout(kernel), &page);
        }
    }

    #[test]
    fn any_bytes_of_a_stated_length_are_read_to_an_end(
        mut page in prop::collection::vec(any::<u8>(), 4096),
        length in 0_u64..4080,
    ) {
        page[8..16].copy_from_slice(&length.to_ne_bytes());
        let (events, end) = read(&layout_64(), &page);
        prop_assert!(end.is_ok() || events.len() < 4096);
    }
}

#[test]
fn padding_ends_a_page() {
    let mut page = PageWriter::new(100);
    page.event(1, &[1; 4]);
    page.head(29, 0);
    page.event(1, &[2; 4]);
    let (events, end) = read(&layout_64(), &page.page(false));
    assert_eq!((events, end), (vec![(101, vec![1; 4])], Ok(false)));
}

#[test]
fn an_event_that_does_not_end_is_an_error() {
    let mut page = PageWriter::new(0);
    page.event(1, &[1; 4]);
    page.head(28, 1);
    page.word(0);
    let cut = PageError::Event { at: 16 + 8 };
    assert_eq!(read(&layout_64(), &page.page(false)).1, Err(cut));
    // A record's length includes the field with the length, but the length here is smaller than that field.
    let mut page = PageWriter::new(0);
    page.head(0, 1);
    page.word(3);
    assert_eq!(
        read(&layout_64(), &page.page(false)).1,
        Err(PageError::Event { at: 16 })
    );
}

#[test]
fn a_page_is_as_long_as_it_says() {
    let mut page = PageWriter::new(0).page(false);
    page[8..16].copy_from_slice(&4081_u64.to_ne_bytes());
    assert_eq!(
        read(&layout_64(), &page).1,
        Err(PageError::Short { bytes: 4096 })
    );
    assert_eq!(
        read(&layout_64(), &page[..15]).1,
        Err(PageError::Short { bytes: 15 })
    );
    assert_eq!(
        read(&layout_64(), &[]).1,
        Err(PageError::Short { bytes: 0 })
    );
}

#[test]
fn a_kernel_of_32_bits_has_a_shorter_header() {
    let mut page = 5_u64.to_ne_bytes().to_vec();
    page.extend((8_u32 | 1 << 31).to_ne_bytes());
    let mut event = PageWriter::new(0);
    event.event(3, &[9; 4]);
    page.extend(&event.page(false)[16..24]);
    let found = read(&layout(KERNELS[0]), &page);
    assert_eq!(found, (vec![(8, vec![9; 4])], Ok(true)));
}

#[test]
fn what_describes_no_page_is_refused() {
    let line = |name, offset: usize, size: usize| {
        format!("\tfield: x {name};\toffset:{offset};\tsize:{size};\tsigned:0;\n")
    };
    let page = |commit: usize, data: usize, size: usize| {
        let header = line("timestamp", 0, 8) + &line("commit", 8, commit);
        Layout::parse(&(header + &line("data", data, size)))
    };
    assert_eq!(page(8, 16, 4080).map(|layout| layout.size), Ok(4096));
    for (commit, data, size) in [
        (3, 16, 4080),
        (8, 8, 4080),
        (8, 16, usize::MAX),
        (8, 16, 1 << 40),
    ] {
        assert_eq!(page(commit, data, size), Err(FormatError::NoPage));
    }
    assert_eq!(Layout::parse(""), Err(FormatError::NoField("data")));
}
