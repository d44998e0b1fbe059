//! Tests random handshakes, whose bytes arrive in pieces of random lengths.

use proptest::prelude::*;

use super::*;

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"a".to_vec()),
        Just(b"b".to_vec()),
        Just(Vec::new()),
        prop::collection::vec(any::<u8>(), 0..6)
    ]
}

fn any_info() -> impl Strategy<Value = Vec<u8>> {
    let items = prop::collection::vec(0..6_u16, 0..5);
    (any_name(), items).prop_map(|(name, items)| info_data(&name, &items))
}

fn any_meta() -> impl Strategy<Value = Vec<u8>> {
    let query = prop::sample::select(vec![&b"base:allocation"[..], b"base:", b"x-y:z", b""]);
    let queries = prop::collection::vec(query, 0..4);
    (any_name(), queries).prop_map(|(name, queries)| meta_data(&name, &queries))
}

/// Options, well-formed or not, that do not end the handshake.
fn any_option() -> impl Strategy<Value = Vec<u8>> {
    let garbage = prop::collection::vec(any::<u8>(), 0..40);
    let meta = option::LIST_META_CONTEXT..=option::SET_META_CONTEXT;
    prop_oneof![
        2 => Just(structured()),
        1 => Just(option(option::LIST, b"")),
        3 => any_info().prop_map(|data| option(option::INFO, &data)),
        3 => (meta, any_meta()).prop_map(|(number, data)| option(number, &data)),
        2 => (prop_oneof![3..7_u32, 8..14_u32], garbage).prop_map(|(number, data)| option(number, &data)),
        1 => Just(option(option::LIST_META_CONTEXT, &vec![1; OPTION_DATA_MAX as usize + 9])),
    ]
}

/// Options that end the handshake, at least in some states.
fn any_end() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        any_info().prop_map(|data| option(option::GO, &data)),
        any_name().prop_map(|name| option(option::EXPORT_NAME, &name)),
        Just(option(option::ABORT, b"")),
        prop::collection::vec(any::<u8>(), 0..40)
    ]
}

prop_compose! {
    fn any_handshake()(
        flags in prop_oneof![9 => 0..4_u8, 1 => any::<u8>()],
        options in prop::collection::vec(any_option(), 0..12),
        end in any_end(),
        rest in prop::collection::vec(any::<u8>(), 0..60),
    ) -> Vec<u8> {
        [vec![0, 0, 0, flags], options.concat(), end, rest].concat()
    }
}

/// Cuts `bytes` into pieces of these lengths, which are used in turn, over and over.
fn pieces<'a>(mut bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for &length in lengths.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (piece, rest) = bytes.split_at(length.min(bytes.len()));
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

proptest! {
    #[test]
    fn how_the_bytes_are_cut_makes_no_difference(
        bytes in any_handshake(),
        lengths in prop::collection::vec(1..200_usize, 1..10),
    ) {
        let whole = run([&bytes[..]]);
        prop_assert_eq!(&run(pieces(&bytes, &lengths)), &whole);
        prop_assert_eq!(&run(pieces(&bytes, &[1])), &whole);
    }

    #[test]
    fn go_answers_as_info_did(
        before in prop::collection::vec(any_option(), 0..4),
        data in any_info(),
    ) {
        let ask = [before.concat(), option(option::INFO, &data), option(option::GO, &data)];
        let (_, output) = run([&[&FLAGS[..], &ask.concat()].concat()[..]]);
        let (infos, mut gos): (Vec<_>, Vec<_>) = answers(&output)
            .into_iter()
            .filter(|answer| matches!(answer.option, option::INFO | option::GO))
            .partition(|answer| answer.option == option::INFO);
        gos.iter_mut().for_each(|answer| answer.option = option::INFO);
        prop_assert!(!gos.is_empty());
        prop_assert!(infos.ends_with(&gos));
    }

    #[test]
    fn whatever_comes_the_output_is_bounded_and_well_formed(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        greeted in any::<bool>(),
    ) {
        let start = if greeted { [&FLAGS[..], OPTION_MAGIC].concat() } else { Vec::new() };
        let (progress, output) = run([&[start, bytes].concat()[..]]);
        prop_assert!(output.len() <= UNSENT_MAX + STRING_MAX);
        if !matches!(progress, Progress::Ready(_)) {
            answers(&output);
        }
    }
}
