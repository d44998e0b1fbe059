mod random;

use super::*;
use crate::export::Power;

const FLAGS: [u8; 4] = [0, 0, 0, 3];
const ACK: u32 = 1;
const SERVER: u32 = 2;
const INFO: u32 = 3;
const META: u32 = 4;
const ERR_UNKNOWN: u32 = 0x8000_0006;

fn exports() -> Arc<[ExportInfo]> {
    let export = |name: &str, description: &str, block, read_only| ExportInfo {
        name: name.into(),
        description: description.into(),
        size: 64 << 20,
        block,
        preferred: block,
        read_only,
        power: Power::default(),
    };
    let ram = export("a", "a ram disk", 512, false);
    Arc::new([ram, export("b", "", 1, true)])
}

fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = OPTION_MAGIC.to_vec();
    bytes.extend_from_slice(&option.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

fn string(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text].concat()
}

fn info_data(name: &[u8], items: &[u16]) -> Vec<u8> {
    let mut data = string(name);
    data.extend_from_slice(&(items.len() as u16).to_be_bytes());
    data.extend(items.iter().flat_map(|item| item.to_be_bytes()));
    data
}

fn meta_data(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let mut data = string(name);
    data.extend_from_slice(&(queries.len() as u32).to_be_bytes());
    data.extend(queries.iter().flat_map(|query| string(query)));
    data
}

/// Passes pieces of input to a handshake. Returns its last progress and its whole output.
fn run<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Progress, Vec<u8>) {
    let mut setup = Handshake::new(exports());
    let mut output = Vec::new();
    let mut pieces = pieces.into_iter();
    while let Some(piece) = pieces.next() {
        match setup.input(piece, &mut output) {
            Progress::More => {}
            Progress::Close => return (Progress::Close, output),
            Progress::Ready(mut negotiated) => {
                pieces.for_each(|piece| negotiated.left_over.extend_from_slice(piece));
                return (Progress::Ready(negotiated), output);
            }
        }
    }
    (Progress::More, output)
}

/// Sends the client flags and then these options, all at once. Returns the progress and the answers.
fn haggle(options: &[Vec<u8>]) -> (Progress, Vec<Answer>) {
    let (progress, output) = run([&[&FLAGS[..], &options.concat()].concat()[..]]);
    (progress, answers(&output))
}

#[derive(Debug, PartialEq)]
struct Answer {
    option: u32,
    kind: u32,
    data: Vec<u8>,
}

fn answers(mut output: &[u8]) -> Vec<Answer> {
    let mut answers = Vec::new();
    while !output.is_empty() {
        let number = |at: usize| u32::from_be_bytes(output[at..at + 4].try_into().unwrap());
        assert_eq!(output[..8], *b"\x00\x03\xe8\x89\x04\x55\x65\xa9");
        let end = 20 + number(16) as usize;
        answers.push(Answer {
            option: number(8),
            kind: number(12),
            data: output[20..end].to_vec(),
        });
        output = &output[end..];
    }
    answers
}

fn kinds(answers: &[Answer]) -> Vec<u32> {
    answers.iter().map(|answer| answer.kind).collect()
}

/// Sends options, after which the handshake must still go on. Returns the kinds of the answers.
fn answered(options: &[Vec<u8>]) -> Vec<u32> {
    let (progress, answers) = haggle(options);
    assert_eq!(progress, Progress::More);
    kinds(&answers)
}

fn ready(progress: Progress) -> Negotiated {
    match progress {
        Progress::Ready(negotiated) => negotiated,
        other => panic!("not ready: {other:?}"),
    }
}

fn structured() -> Vec<u8> {
    option(option::STRUCTURED_REPLY, b"")
}

fn go(name: &[u8]) -> Vec<u8> {
    option(option::GO, &info_data(name, &[]))
}

fn set_meta(name: &[u8], query: &[u8]) -> Vec<u8> {
    option(option::SET_META_CONTEXT, &meta_data(name, &[query]))
}

/// Sends the bytes of a handshake of qemu-io 7.2, which must get the replies that the protocol demands.
#[test]
fn a_handshake_of_qemu() {
    let client = [
        &b"\x00\x00\x00\x03"[..],
        b"IHAVEOPT\x00\x00\x00\x08\x00\x00\x00\x00",
        b"IHAVEOPT\x00\x00\x00\x0a\x00\x00\x00\x1c",
        b"\x00\x00\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x0fbase:allocation",
        b"IHAVEOPT\x00\x00\x00\x07\x00\x00\x00\x09",
        b"\x00\x00\x00\x01a\x00\x01\x00\x03",
    ];
    let server = [
        &b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x08\x00\x00\x00\x01\x00\x00\x00\x00"[..],
        b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x0a\x00\x00\x00\x04\x00\x00\x00\x13",
        b"\x00\x00\x00\x01base:allocation",
        b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x00\x00\x00",
        b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x07\x00\x00\x00\x03\x00\x00\x00\x0c",
        b"\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x05\xed",
        b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x07\x00\x00\x00\x03\x00\x00\x00\x0e",
        b"\x00\x03\x00\x00\x02\x00\x00\x00\x10\x00\x02\x00\x00\x00",
        b"\x00\x03\xe8\x89\x04\x55\x65\xa9\x00\x00\x00\x07\x00\x00\x00\x01\x00\x00\x00\x00",
    ];
    let (progress, output) = run(client);
    assert_eq!(output, server.concat());
    let features = Features {
        structured: true,
        base_allocation: true,
    };
    let negotiated = Negotiated {
        export: 0,
        features,
        left_over: Vec::new(),
    };
    assert_eq!(progress, Progress::Ready(negotiated));
}

#[test]
fn export_name_pads_with_zeroes_unless_told_not_to() {
    let name = option(option::EXPORT_NAME, b"b");
    let reply = b"\x00\x00\x00\x00\x04\x00\x00\x00\x05\x0f";
    for (flags, zeroes) in [(0, 124), (1, 124), (2, 0), (3, 0)] {
        let (progress, output) = run([&[0, 0, 0, flags][..], &name, b"next"]);
        assert_eq!(output, [&reply[..], &vec![0; zeroes]].concat());
        let negotiated = ready(progress);
        assert_eq!(negotiated.export, 1);
        assert_eq!(negotiated.left_over, b"next");
    }
}

#[test]
fn export_name_tells_the_flags_of_structured_replies() {
    let (progress, output) = run([
        &FLAGS[..],
        &structured(),
        &option(option::EXPORT_NAME, b"a"),
    ]);
    assert!(ready(progress).features.structured);
    assert!(output.ends_with(b"\x00\x00\x00\x00\x04\x00\x00\x00\x05\xed"));
}

#[test]
fn export_name_cannot_say_no_and_closes() {
    for name in [&b"c"[..], &[b'a'; STRING_MAX], &[b'a'; STRING_MAX + 1]] {
        let (progress, answers) = haggle(&[option(option::EXPORT_NAME, name)]);
        assert_eq!(progress, Progress::Close);
        assert_eq!(answers, []);
    }
}

#[test]
fn unknown_client_flags_and_a_wrong_magic_close() {
    assert_eq!(run([&[0, 0, 0, 4][..]]), (Progress::Close, Vec::new()));
    assert_eq!(run([&[0x80, 0, 0, 0][..]]), (Progress::Close, Vec::new()));
    let (progress, answers) = haggle(&[b"IHAVEOPS\x00\x00\x00\x03\x00\x00\x00\x00".to_vec()]);
    assert_eq!((progress, answers), (Progress::Close, Vec::new()));
}

#[test]
fn abort_is_acknowledged_then_closed() {
    for data in [&b""[..], b"why not"] {
        let (progress, answers) = haggle(&[option(option::ABORT, data), structured()]);
        assert_eq!(progress, Progress::Close);
        assert_eq!(kinds(&answers), [ACK]);
    }
}

#[test]
fn nothing_is_answered_once_it_is_over() {
    for last in [option(option::ABORT, b""), go(b"a")] {
        let mut setup = Handshake::new(exports());
        let mut output = Vec::new();
        let whole = [&FLAGS[..], &last].concat();
        assert_ne!(setup.input(&whole, &mut output), Progress::More);
        output.clear();
        assert_eq!(setup.input(&structured(), &mut output), Progress::Close);
        assert_eq!(output, b"");
    }
}

#[test]
fn list_names_every_export() {
    let (progress, answers) = haggle(&[option(option::LIST, b"")]);
    assert_eq!(progress, Progress::More);
    assert_eq!(kinds(&answers), [SERVER, SERVER, ACK]);
    assert_eq!(answers[0].data, b"\x00\x00\x00\x01aa ram disk");
    assert_eq!(answers[1].data, b"\x00\x00\x00\x01b");
}

#[test]
fn options_without_data_refuse_data() {
    for number in [option::LIST, option::STRUCTURED_REPLY] {
        assert_eq!(answered(&[option(number, b"x")]), [reply::ERR_INVALID]);
    }
}

#[test]
fn unknown_options_are_skipped_and_the_stream_stays_in_step() {
    for number in [0, 4, option::STARTTLS, 11, u32::MAX] {
        let options = [option(number, &[7; 100_000]), option(option::LIST, b"")];
        assert_eq!(
            answered(&options),
            [reply::ERR_UNSUP, SERVER, SERVER, ACK],
            "option {number}"
        );
    }
}

#[test]
fn oversized_data_is_skipped_in_little_memory() {
    let bytes = [
        FLAGS.to_vec(),
        option(option::GO, &vec![0; 1 << 20]),
        option(option::LIST, b""),
    ];
    let mut setup = Handshake::new(exports());
    let mut output = Vec::new();
    for piece in bytes.concat().chunks(4096) {
        assert_eq!(setup.input(piece, &mut output), Progress::More);
        assert!(setup.received.capacity() <= 2 * 4096);
    }
    let expected = [reply::ERR_TOO_BIG, SERVER, SERVER, ACK];
    assert_eq!(kinds(&answers(&output)), expected);
}

#[test]
fn info_tells_size_and_blocks_always_and_the_rest_when_asked() {
    let info = |name: &[u8], items: &[u16]| {
        let (progress, answers) = haggle(&[option(option::INFO, &info_data(name, items))]);
        assert_eq!(progress, Progress::More);
        answers
            .into_iter()
            .map(|answer| answer.data)
            .collect::<Vec<_>>()
    };
    let size = b"\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x05\x6d";
    let blocks = b"\x00\x03\x00\x00\x02\x00\x00\x00\x10\x00\x02\x00\x00\x00";
    assert_eq!(info(b"a", &[]), [&size[..], blocks, b""]);
    assert_eq!(info(b"a", &[3, 0, 77]), [&size[..], blocks, b""]);
    assert_eq!(
        info(b"", &[1, 2]),
        [&size[..], blocks, b"\x00\x01a", b"\x00\x02a ram disk", b""]
    );
    assert_eq!(info(b"b", &[2]).len(), 3, "there is no description to tell");
}

#[test]
fn go_ends_the_handshake_and_keeps_what_follows() {
    let (progress, answers) = haggle(&[structured(), go(b"b"), b"request".to_vec()]);
    assert_eq!(kinds(&answers), [ACK, INFO, INFO, ACK]);
    let negotiated = ready(progress);
    assert_eq!(negotiated.export, 1);
    assert!(negotiated.features.structured);
    assert_eq!(negotiated.left_over, b"request");
}

#[test]
fn an_unknown_export_is_named_in_the_answer() {
    let wrong = b"c\xff\x1b";
    let options = [
        structured(),
        go(wrong),
        option(option::INFO, &info_data(wrong, &[])),
        set_meta(wrong, b"base:allocation"),
        option(option::LIST_META_CONTEXT, &meta_data(wrong, &[])),
    ];
    let (progress, answers) = haggle(&options);
    assert_eq!(progress, Progress::More);
    assert_eq!(kinds(&answers)[1..], [ERR_UNKNOWN; 4]);
    let message = str::from_utf8(&answers[1].data).unwrap();
    assert_eq!(message, "there is no export \"c\u{fffd}\\u{1b}\"");
}

#[test]
fn a_message_is_no_longer_than_a_string_may_be() {
    let (_, answers) = haggle(&[go(&[0xff; STRING_MAX])]);
    assert_eq!(answers[0].kind, ERR_UNKNOWN);
    assert!(answers[0].data.len() <= STRING_MAX);
    assert!(str::from_utf8(&answers[0].data).is_ok());
}

#[test]
fn lengths_that_do_not_add_up_are_invalid() {
    let info = info_data(b"a", &[3, 1]);
    let meta = meta_data(b"a", &[b"base:allocation"]);
    let cases = [(option::GO, info), (option::INFO, info_data(b"", &[]))];
    let cases = cases.into_iter().chain([
        (option::SET_META_CONTEXT, meta.clone()),
        (option::LIST_META_CONTEXT, meta),
    ]);
    for (number, data) in cases {
        for cut in 0..data.len() {
            let options = [structured(), option(number, &data[..cut])];
            assert_eq!(answered(&options), [ACK, reply::ERR_INVALID], "{cut}");
        }
        for extra in [&b"x"[..], b"xx", b"xxxx"] {
            let longer = [&data[..], extra].concat();
            let options = [structured(), option(number, &longer)];
            assert_eq!(answered(&options), [ACK, reply::ERR_INVALID]);
        }
    }
    let long = info_data(&[b'a'; STRING_MAX + 1], &[]);
    assert_eq!(answered(&[option(option::GO, &long)]), [reply::ERR_INVALID]);
    let many = [&string(b"a")[..], &u32::MAX.to_be_bytes()].concat();
    let options = [structured(), option(option::SET_META_CONTEXT, &many)];
    assert_eq!(answered(&options), [ACK, reply::ERR_INVALID]);
}

#[test]
fn meta_contexts_come_after_structured_replies() {
    for number in [option::LIST_META_CONTEXT, option::SET_META_CONTEXT] {
        let early = option(number, &meta_data(b"a", &[b"base:allocation"]));
        let options = [early.clone(), structured(), early];
        assert_eq!(answered(&options), [reply::ERR_INVALID, ACK, META, ACK]);
    }
}

#[test]
fn queries_select_and_list_the_context() {
    let cases: [(&[&[u8]], bool, bool); 6] = [
        (&[], false, true),
        (&[b"base:allocation"], true, true),
        (&[b"base:"], false, true),
        (&[b"base:none", b"x-y:z", b"nonsense", b""], false, false),
        (&[b"x-y:z", b"base:allocation"], true, true),
        (&[b"base:allocation", b"base:allocation"], true, true),
    ];
    let found = |number, queries: &[&[u8]]| {
        let options = [structured(), option(number, &meta_data(b"a", queries))];
        let kinds = answered(&options);
        assert_eq!(kinds.last(), Some(&ACK));
        kinds.len() == 3
    };
    for (queries, selected, listed) in cases {
        assert_eq!(found(option::SET_META_CONTEXT, queries), selected);
        assert_eq!(found(option::LIST_META_CONTEXT, queries), listed);
    }
}

#[test]
fn a_selection_holds_for_its_export_until_the_next() {
    let good = set_meta(b"a", b"base:allocation");
    let selected = |options: &[Vec<u8>], name| {
        let (progress, _) = haggle(&[&[structured()], options, &[go(name)]].concat());
        ready(progress).features.base_allocation
    };
    assert!(selected(std::slice::from_ref(&good), b"a"));
    assert!(
        selected(std::slice::from_ref(&good), b""),
        "a is the default"
    );
    assert!(!selected(&[], b"a"));
    assert!(!selected(std::slice::from_ref(&good), b"b"));
    for replacement in [
        set_meta(b"a", b"base:"),
        set_meta(b"b", b"base:allocation"),
        set_meta(b"c", b"base:allocation"),
        option(option::SET_META_CONTEXT, b"malformed"),
        option(
            option::SET_META_CONTEXT,
            &vec![0; OPTION_DATA_MAX as usize + 1],
        ),
    ] {
        assert!(!selected(&[good.clone(), replacement], b"a"));
    }
    let other = option(option::LIST_META_CONTEXT, &meta_data(b"b", &[]));
    assert!(selected(&[good, other, go(b"unknown")], b"a"));
}

#[test]
fn a_handshake_has_so_many_options() {
    let mut setup = Handshake::new(exports());
    assert_eq!(setup.input(&FLAGS, &mut Vec::new()), Progress::More);
    let list = option(option::LIST, b"");
    for _ in 0..OPTIONS_MAX {
        assert_eq!(setup.input(&list, &mut Vec::new()), Progress::More);
    }
    assert_eq!(setup.input(&list, &mut Vec::new()), Progress::Close);
}

#[test]
fn a_client_that_asks_and_does_not_read_is_closed() {
    let long = ExportInfo {
        description: "d".repeat(STRING_MAX),
        ..exports()[0].clone()
    };
    let mut setup = Handshake::new(Arc::new([long]));
    let mut output = Vec::new();
    let lists = [FLAGS.to_vec(), option(option::LIST, b"").repeat(100)].concat();
    assert_eq!(setup.input(&lists, &mut output), Progress::Close);
    assert!(output.len() <= UNSENT_MAX + 2 * STRING_MAX);
}

#[test]
fn an_export_without_power_is_listed_and_refused() {
    let exports = exports();
    exports[0].power.switch(false);
    let mut setup = Handshake::new(Arc::clone(&exports));
    let mut output = Vec::new();
    let bytes = [FLAGS.to_vec(), option(option::LIST, b""), go(b"a")].concat();
    assert_eq!(setup.input(&bytes, &mut output), Progress::More);
    let refused = 0x8000_0002_u32.to_be_bytes();
    assert!(output.windows(4).any(|word| word == refused));
    let text = String::from_utf8_lossy(&output);
    assert!(text.contains("`dashpot crash a --restart`"), "{text}");

    let other = setup.input(&go(b"b"), &mut output);
    assert!(matches!(other, Progress::Ready(_)), "{other:?}");
    let mut old = Handshake::new(Arc::clone(&exports));
    let by_name = [FLAGS.to_vec(), option(option::EXPORT_NAME, b"a")].concat();
    assert_eq!(old.input(&by_name, &mut output), Progress::Close);
    exports[0].power.switch(true);
    let mut again = Handshake::new(exports);
    let ready = again.input(&[FLAGS.to_vec(), go(b"a")].concat(), &mut output);
    assert!(matches!(ready, Progress::Ready(_)), "{ready:?}");
}

#[test]
fn a_server_without_exports_says_so() {
    let mut setup = Handshake::new(Arc::new([]));
    let mut output = Vec::new();
    let bytes = [FLAGS.to_vec(), option(option::LIST, b""), go(b"")].concat();
    assert_eq!(setup.input(&bytes, &mut output), Progress::More);
    assert_eq!(kinds(&answers(&output)), [ACK, ERR_UNKNOWN]);
}
