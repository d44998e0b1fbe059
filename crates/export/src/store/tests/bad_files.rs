//! Tests that files which cannot be stores are refused with a message that names them, and stay unchanged.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use dashpot_rules::{DiskConfig, StoreConfig};
use rustix::fs::{Mode, XattrFlags, getxattr, setxattr};

use super::super::file::label::ATTRIBUTE;
use super::super::{Adoption, OpenDevices, StoreError, available_memory, open_all};
use super::{directory_of, disk, file, open_one};

/// Opens a disk, which must be refused. Returns the message, which must contain all of `parts`.
fn refusal(disk: DiskConfig, parts: &[&str]) -> String {
    let message = open_one(disk).unwrap_err().to_string();
    for part in parts {
        assert!(message.contains(part), "no {part:?} in {message:?}");
    }
    message
}

fn read_only(name: &str, path: &Path) -> DiskConfig {
    DiskConfig {
        read_only: true,
        rotational: false,
        ..file(name, path)
    }
}

fn label(path: &Path) -> Option<String> {
    let mut name = [0; 100];
    let length = getxattr(path, ATTRIBUTE, &mut name).ok()?;
    Some(String::from_utf8_lossy(&name[..length]).into_owned())
}

/// Whether the file system of a file supports labels. If not, reports that the test is skipped.
fn has_labels(path: &Path) -> bool {
    let has = setxattr(path, "user.dashpot.test", b"", XattrFlags::empty()).is_ok();
    if !has {
        skip(&format!(
            "the file system of {} has no attributes; TMPDIR names another",
            path.display()
        ));
    }
    has
}

/// Reports a skipped test on standard error directly, because the test harness hides the output of tests that
/// pass. `make test` counts these lines.
fn skip(why: &str) {
    let test = std::thread::current();
    let name = test.name().unwrap_or_default();
    let _ = writeln!(std::io::stderr(), "skipped: {name}: {why}");
}

#[test]
fn a_missing_file() {
    let path = PathBuf::from("/nowhere/d0.img");
    refusal(
        file("d0", &path),
        &["`d0`", "truncate -s 1G /nowhere/d0.img"],
    );
    let sized = disk("d0", StoreConfig::File(path), Some(512 << 20));
    refusal(sized, &["truncate -s 512M /nowhere/d0.img"]);
}

#[test]
fn a_directory_and_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    refusal(file("d0", directory.path()), &["`d0`", "is a directory"]);
    refusal(read_only("d0", directory.path()), &["is a directory"]);
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        Mode::RUSR,
        0,
    )
    .unwrap();
    refusal(file("d0", &pipe), &["is not a regular file"]);
}

/// Uses a file to which not even root may write.
#[test]
fn a_file_that_cannot_be_written() {
    let path = Path::new("/sys/kernel/uevent_seqnum");
    if !path.exists() {
        skip(&format!("there is no {}", path.display()));
        return;
    }
    refusal(
        file("d0", path),
        &["cannot be written", "chmod u+w", "`ro`"],
    );
    assert!(open_one(read_only("d0", path)).is_ok());
}

#[test]
fn a_file_in_use() {
    let (_directory, path) = directory_of(4096);
    let first = open_one(file("d0", &path)).unwrap();
    refusal(
        file("d0", &path),
        &["`d0`", "in use", path.to_str().unwrap()],
    );
    refusal(read_only("d0", &path), &["in use"]);
    drop(first);
    let reader = open_one(read_only("d0", &path)).unwrap();
    let second = open_one(read_only("d0", &path)).unwrap();
    refusal(file("d0", &path), &["in use"]);
    drop((reader, second));
    assert!(open_one(file("d0", &path)).is_ok());
}

#[test]
fn a_file_smaller_than_its_disk() {
    let (_directory, path) = directory_of(1 << 20);
    let large = disk("d0", StoreConfig::File(path.clone()), Some(3 << 20));
    refusal(large, &["has 1M", "size of 3M", "truncate -s 3M"]);
    let small = disk("d0", StoreConfig::File(path.clone()), Some(4096));
    assert_eq!(open_one(small).unwrap().size, 4096);
    assert_eq!(open_one(file("d0", &path)).unwrap().size, 1 << 20);
    let late = |size| DiskConfig {
        offset: 512 << 10,
        ..disk("d0", StoreConfig::File(path.clone()), size)
    };
    refusal(
        late(Some(1 << 20)),
        &["has 1M", "offset of 512K and size of 1M", "-s 1536K"],
    );
    assert_eq!(open_one(late(None)).unwrap().size, 512 << 10);
    let behind = DiskConfig {
        offset: 2 << 20,
        ..late(None)
    };
    refusal(behind, &["size of 0"]);
}

#[test]
fn disks_of_no_size() {
    let (_directory, path) = directory_of(0);
    refusal(
        file("d0", &path),
        &["`d0`", "d0.img has a size of 0", "truncate"],
    );
    refusal(
        disk("d1", StoreConfig::Ram, None),
        &["`d1`", "ram has no size", "size=1G"],
    );
    refusal(
        disk("d1", StoreConfig::Null, Some(0)),
        &["null has a size of 0"],
    );
    let lossy = StoreConfig::Lossy(Box::new(StoreConfig::Ram));
    refusal(disk("d2", lossy, None), &["`d2`", "ram has no size"]);
}

/// Opens the files of disks and labels them, as a start that succeeds does.
fn adopt(disks: &[DiskConfig]) {
    let opened = open_all(disks, &OpenDevices::default(), false).unwrap();
    for (disk, opened) in disks.iter().zip(&opened) {
        Adoption::of(disk, opened).unwrap().adopt().unwrap();
    }
}

#[test]
fn swapped_files() {
    let (directory, d0) = directory_of(4096);
    if !has_labels(&d0) {
        return;
    }
    let d1 = directory.path().join("d1.img");
    File::create(&d1).unwrap().set_len(4096).unwrap();
    adopt(&[file("d0", &d0), file("d1", &d1)]);
    adopt(&[file("d0", &d0), file("d1", &d1)]);
    let swap = directory.path().join("swap");
    fs::rename(&d0, &swap).unwrap();
    fs::rename(&d1, &d0).unwrap();
    fs::rename(&swap, &d1).unwrap();
    refusal(
        file("d0", &d0),
        &["`d0`", "belongs to disk `d1`", "setfattr -x"],
    );
    refusal(read_only("d1", &d1), &["belongs to disk `d0`"]);
    let lossy = StoreConfig::Lossy(Box::new(StoreConfig::File(d0.clone())));
    refusal(disk("d0", lossy, None), &["belongs to disk `d1`"]);
    assert!(open_one(file("d1", &d0)).is_ok());
}

#[test]
fn a_label_leaves_every_byte_alone() {
    let (_directory, path) = directory_of(5000);
    fs::write(&path, vec![7; 5000]).unwrap();
    drop(open_one(file("d0", &path)).unwrap());
    assert_eq!(label(&path), None, "to open is not to adopt");
    adopt(&[file("d0", &path)]);
    assert_eq!(fs::read(&path).unwrap(), vec![7; 5000]);
    if has_labels(&path) {
        assert_eq!(label(&path).as_deref(), Some("d0"));
    }
}

#[test]
fn readers_and_failures_do_not_label() {
    let (_directory, path) = directory_of(4096);
    adopt(&[read_only("d0", &path)]);
    assert_eq!(label(&path), None);
    let missing = file("d1", Path::new("/nowhere/d1.img"));
    assert!(
        open_all(
            &[file("d0", &path), missing],
            &OpenDevices::default(),
            false
        )
        .is_err()
    );
    assert_eq!(label(&path), None);
    let twice = [file("d0", &path), file("d1", &path)];
    assert!(matches!(
        open_all(&twice, &OpenDevices::default(), false),
        Err(StoreError::InUse { .. })
    ));
    assert_eq!(label(&path), None);
}

#[test]
fn ram_disks_larger_than_memory() {
    let available = available_memory().unwrap();
    let ram = |name| disk(name, StoreConfig::Ram, Some(available / 10 * 6));
    assert!(open_one(ram("d0")).is_ok());
    let two = [ram("d0"), ram("d1")];
    let message = open_all(&two, &OpenDevices::default(), false)
        .unwrap_err()
        .to_string();
    assert!(message.contains("--overcommit"), "{message}");
    assert!(open_all(&two, &OpenDevices::default(), true).is_ok());
    let null = disk("d1", StoreConfig::Null, Some(1 << 60));
    assert!(open_all(&[ram("d0"), null], &OpenDevices::default(), false).is_ok());
}
