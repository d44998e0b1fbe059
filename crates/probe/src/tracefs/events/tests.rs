use super::{Decoder, Kind, encode, filter, filtered, wanted};
use crate::device::{Device, Layer, Number};
use crate::io::{Comm, Rwbs};
use crate::options::{Options, Start};
use crate::record::{Record, What};
use crate::tracefs::fixtures::{KERNELS, format, record};

const DISK: Number = Number {
    major: 259,
    minor: 0x1_2345,
};

fn device(name: &str, disk: Number, layer: Layer) -> Device {
    Device {
        name: name.into(),
        number: disk,
        disk,
        sequence: None,
        home: 1,
        part: None,
        layer,
    }
}

fn number(major: u32, minor: u32) -> Number {
    Number { major, minor }
}

fn all() -> Vec<(Kind, What)> {
    let comm = Comm::new(b"fio");
    vec![
        (Kind::BioQueue, What::BioQueue(comm)),
        (Kind::Split, What::Split(0xdead_beef_cafe)),
        (Kind::Issue, What::Issue(4096)),
        (Kind::Requeue, What::Requeue),
        (Kind::Complete, What::Complete(5)),
        (Kind::BioComplete, What::BioComplete(5)),
    ]
}

#[test]
fn every_kernel_s_records_are_read() {
    let fields = [
        ("common_pid", 4711_i32.to_ne_bytes().to_vec()),
        ("dev", encode(DISK).to_ne_bytes().to_vec()),
        ("sector", 0x1234_5678_9abc_u64.to_ne_bytes().to_vec()),
        ("nr_sector", 8_u32.to_ne_bytes().to_vec()),
        ("new_sector", 0xdead_beef_cafe_u64.to_ne_bytes().to_vec()),
        ("bytes", 4096_u32.to_ne_bytes().to_vec()),
        ("error", (-5_i32).to_ne_bytes().to_vec()),
        ("errors", (-5_i32).to_ne_bytes().to_vec()),
        ("rwbs", b"FWFSM".to_vec()),
        ("comm", b"fio".to_vec()),
    ];
    let mut read = 0;
    for (kernel, (kind, what)) in KERNELS
        .iter()
        .flat_map(|kernel| all().into_iter().map(move |kind| (kernel, kind)))
    {
        let format = format(kernel, kind.name()).expect("every kernel has it");
        let decoder = Decoder::new(kind, &format).expect("a decoder");
        let bytes = record(&format, &fields);
        let expected = Record {
            at_ns: 99,
            device: DISK,
            sector: 0x1234_5678_9abc,
            sectors: if kind == Kind::Split { 0 } else { 8 },
            rwbs: Rwbs::new(b"FWFSM"),
            pid: 4711,
            what,
        };
        assert_eq!(decoder.read(99, &bytes), Some(expected));
        assert_eq!(decoder.read(99, &bytes[..24]), None, "too short");
        read += 1;
    }
    assert_eq!(read, 4 * 6);
}

#[test]
fn requests_and_bios_take_their_own_events() {
    let devices = vec![
        device("vda", number(254, 0), Layer::Request),
        device("vda1", number(254, 0), Layer::Request),
        device("dm-0", number(252, 0), Layer::Bio),
    ];
    let kinds = |start, submitters| -> Vec<(&str, Vec<u32>)> {
        let devices = devices.clone();
        let wanted = wanted(&Options {
            devices,
            later: false,
            start,
            submitters,
            processes: false,
            cgroups: false,
        });
        let majors = |disks: &[Number]| disks.iter().map(|disk| disk.major).collect();
        let kinds = wanted.iter();
        kinds
            .map(|(kind, disks)| (kind.name(), majors(disks)))
            .collect()
    };
    let issue = [
        ("block_bio_queue", vec![252]),
        ("block_rq_issue", vec![254]),
        ("block_rq_requeue", vec![254]),
        ("block_rq_complete", vec![254]),
        ("block_bio_complete", vec![252]),
    ];
    let queue = [
        ("block_bio_queue", vec![252, 254]),
        ("block_split", vec![254]),
        ("block_rq_issue", vec![254]),
        ("block_rq_requeue", vec![254]),
        ("block_rq_complete", vec![254]),
        ("block_bio_complete", vec![252, 254]),
    ];
    assert_eq!(kinds(Start::Issue, false), issue);
    assert_eq!(kinds(Start::Queue, false), queue);
    assert_eq!(kinds(Start::Issue, true), queue);
}

#[test]
fn the_filter_names_disks_as_the_kernel_does() {
    let two = [number(7, 1), number(254, 0)];
    assert_eq!(
        filter("==", " || ", &two).as_deref(),
        Some("dev == 7340033 || dev == 266338304")
    );
    let many: Vec<_> = (0..1000).map(|minor| number(259, minor)).collect();
    assert_eq!(filter("==", " || ", &many), None);
}

#[test]
fn disks_that_appear_later_pass_the_filter() {
    let known = [
        device("vda", number(254, 0), Layer::Request),
        device("dm-0", number(252, 0), Layer::Bio),
    ];
    let options = |submitters| Options {
        devices: known.to_vec(),
        later: true,
        start: Start::Issue,
        submitters,
        processes: false,
        cgroups: false,
    };
    let of = |submitters, kind: Kind| {
        let all = filtered(&options(submitters), &known);
        let found = all.into_iter().find(|(one, _)| *one == kind);
        found.map(|(_, filter)| filter)
    };
    let not = |disk| Some(Some(format!("dev != {}", encode(disk))));
    assert_eq!(of(false, Kind::Issue), not(number(252, 0)));
    assert_eq!(of(false, Kind::BioComplete), not(number(254, 0)));
    assert_eq!(of(false, Kind::Split), None, "no layer needs it");
    assert_eq!(of(true, Kind::BioQueue), Some(None), "every layer needs it");
}
