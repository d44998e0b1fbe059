use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use super::{Device, DeviceError, Layer, Number, find_in, list, parse_number};

/// The sysfs of a kernel with a partitioned disk, a loop device without a file, and a disk of the
/// device mapper.
fn sys() -> tempfile::TempDir {
    let sys = tempfile::tempdir().expect("a directory");
    let put = |path: &str, text: &str| {
        let path = sys.path().join("devices").join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    };
    for (home, number, size) in [
        ("pci0/block/sda", "8:0\n", "204800\n"),
        ("pci0/block/sda/sda1", "8:1\n", "40960\n"),
        ("virtual/block/loop0", "7:0\n", "0\n"),
        ("virtual/block/dm-0", "252:0\n", "2048\n"),
    ] {
        put(&format!("{home}/dev"), number);
        put(&format!("{home}/size"), size);
        let name = home.rsplit('/').next().expect("a name");
        let class = sys.path().join("class/block");
        fs::create_dir_all(&class).expect("a directory");
        symlink(sys.path().join("devices").join(home), class.join(name)).expect("a link");
    }
    put("pci0/block/sda/mq/0/nr_tags", "64\n");
    put("pci0/block/sda/diskseq", "7\n");
    put("virtual/block/loop0/mq/0/nr_tags", "64\n");
    put("pci0/block/sda/sda1/partition", "1\n");
    put("pci0/block/sda/sda1/start", "2048\n");
    sys
}

fn inode(sys: &tempfile::TempDir, home: &str) -> u64 {
    let home = fs::metadata(sys.path().join("devices").join(home));
    home.expect("a directory").ino()
}

fn number(major: u32, minor: u32) -> Number {
    Number { major, minor }
}

fn remedy(sys: &Path, words: &str) -> String {
    match find_in(sys, words) {
        Err(DeviceError::Unknown {
            words: named,
            remedy,
        }) => {
            assert_eq!(named, words);
            remedy
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_device_is_found_by_name_and_by_number() {
    let sys = sys();
    let expected = Device {
        name: "sda1".into(),
        number: number(8, 1),
        disk: number(8, 0),
        sequence: Some(7),
        home: inode(&sys, "pci0/block/sda"),
        part: Some(2048..43008),
        layer: Layer::Request,
    };
    for words in ["sda1", "8,1", "8:1"] {
        assert_eq!(find_in(sys.path(), words).expect("a device"), expected);
    }
    let mapped = find_in(sys.path(), "dm-0").expect("a device");
    assert_eq!(
        (mapped.layer, mapped.part, mapped.disk),
        (Layer::Bio, None, number(252, 0))
    );
    let names: Vec<_> = list(sys.path())
        .expect("devices")
        .into_iter()
        .map(|d| d.name)
        .collect();
    assert_eq!(names, ["dm-0", "loop0", "sda", "sda1"]);
}

#[test]
fn what_is_no_device_says_what_it_is_instead() {
    let sys = sys();
    let there_are = "there are dm-0, sda, sda1";
    assert_eq!(
        remedy(sys.path(), "sdb"),
        format!("did you mean 'sda'? {there_are}")
    );
    assert_eq!(remedy(sys.path(), "nvme0n1"), there_are);
    assert_eq!(remedy(sys.path(), ""), there_are);
    let none = format!("the kernel has none with the number 8,7; {there_are}");
    assert_eq!(remedy(sys.path(), "8,7"), none);
    let character = format!("it is a character device; {there_are}");
    assert_eq!(remedy(sys.path(), "/dev/null"), character);
    let missing = format!("there is no such file; did you mean 'sda'? {there_are}");
    assert_eq!(remedy(sys.path(), "/dev/no-such-directory/sda2"), missing);
    assert!(remedy(sys.path(), "/").starts_with("it is a directory"));
    let file = sys.path().join("class/block/sda/size");
    assert!(remedy(sys.path(), file.to_str().expect("a path")).starts_with("it is a file"));
}

#[test]
fn a_machine_without_sysfs_is_told_so() {
    let nothing = Path::new("/no/such/sys");
    assert!(matches!(
        find_in(nothing, "sda"),
        Err(DeviceError::Unreadable(_))
    ));
}

#[test]
fn a_device_that_is_gone_is_not_there() {
    let sys = sys();
    let sda = find_in(sys.path(), "sda").expect("a device");
    let is_there = || sda.is_there_in(sys.path());
    assert!(is_there());
    let put = |file: &str, text: &str| {
        fs::write(sys.path().join("class/block/sda").join(file), text).expect("a file");
    };
    put("size", "0\n");
    assert!(!is_there(), "it has no size");
    put("size", "8\n");
    assert!(is_there());
    put("diskseq", "8\n");
    assert!(!is_there(), "another has its name and its number");
    put("diskseq", "7\n");
    assert!(is_there());
    put("dev", "8:16\n");
    assert!(!is_there(), "another has its name");
    fs::remove_file(sys.path().join("class/block/sda")).expect("a link");
    assert!(!is_there());
}

#[test]
fn numbers_are_two() {
    assert_eq!(parse_number("259,70000"), Some(number(259, 70000)));
    for words in ["", "7", "7,", ",0", "7,0,1", "a,b", "-7,0", "7, 0"] {
        assert_eq!(parse_number(words), None, "{words:?}");
    }
}

#[test]
fn a_disk_is_idle_if_the_kernel_counts_nothing_on_it() {
    let sys = tempfile::tempdir().expect("a directory");
    let home = sys.path().join("dev/block/8:0");
    let part = Device {
        name: "sda1".into(),
        number: number(8, 1),
        disk: number(8, 0),
        sequence: None,
        home: 1,
        part: Some(2048..43008),
        layer: Layer::Request,
    };
    assert!(part.is_idle_in(sys.path()), "it has gone");
    fs::create_dir_all(home.join("queue")).expect("a directory");
    for (counts, inflight, idle) in [
        ("1\n", "       0        0\n", true),
        ("1\n", "       0        1\n", false),
        ("1\n", "      10        0\n", false),
        ("0\n", "       0        0\n", false),
    ] {
        fs::write(home.join("queue/iostats"), counts).expect("a file");
        fs::write(home.join("inflight"), inflight).expect("a file");
        assert_eq!(part.is_idle_in(sys.path()), idle, "{counts}{inflight}");
    }
}
