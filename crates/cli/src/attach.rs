//! Disks and volumes as block devices of this host.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

/// Make a disk or a volume a block device, and print its node
#[derive(Args, Debug)]
#[command(after_help = "\
This command needs root; the daemon needs no privilege. The device stays until
'dashpot detach'. /dev/dashpot/DISK is a link to it, so disks of two daemons
need different names. The drivers, in the order in which auto tries them:
  nbd   The kernel's NBD client. Once the daemon is gone the device waits 20 s
        for it: start the daemon again, and attach the disk again. The device
        then continues if the disk has the same file as before; a volume needs
        the same files and write = \"through\". Programs see every error as EIO
  ublk  The kernel's ublk driver, of Linux 6.9 or later. It takes the least CPU,
        takes 256 requests at a time, and passes errors on unchanged. The device
        ends with the daemon
  loop  A loop device over a FUSE file. It fails all I/O once the daemon is gone

Example:
  sudo dashpot attach c1t1d0
  sudo mkfs.ext4 -q /dev/dashpot/c1t1d0")]
pub struct AttachArgs {
    /// The disk, or the volume of a pool (POOL/VOLUME)
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub disk: String,
    /// The kernel's driver: auto (the best that works), nbd, ublk or loop
    #[arg(
        long,
        value_name = "WAY",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub with: With,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Attach a disk or a volume, and mount its file system
#[derive(Args, Debug)]
#[command(after_help = "\
Like 'dashpot attach', this needs root, and it prints the node. 'dashpot detach'
undoes both steps. --mkfs never overwrites a disk that has data on it. The mount
has the options nosuid and nodev, because a disk's owner could put anything on
it; '-o suid,dev' takes them away.

Example:
  sudo dashpot mount c1t1d0 /mnt --mkfs
  sudo dashpot detach c1t1d0")]
pub struct MountArgs {
    /// The disk, or the volume of a pool (POOL/VOLUME)
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub disk: String,
    /// Where to mount it
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Make a file system first, on an empty disk
    #[arg(long)]
    pub mkfs: bool,
    /// The kind of file system, such as ext4, xfs or btrfs [the disk's, or else ext4]
    #[arg(long, value_name = "FS")]
    pub fs: Option<FileSystem>,
    /// Options of the mount, as for mount(8), after nosuid,nodev
    #[arg(short, long, value_name = "OPTIONS", value_parser = NonEmptyStringValueParser::new())]
    pub options: Option<String>,
    /// The kernel's driver; see attach
    #[arg(
        long,
        value_name = "WAY",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub with: With,
}

/// A kind of file system, by the kernel's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem(String);

impl FileSystem {
    /// The name, as in `mkfs.NAME`.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Default for FileSystem {
    fn default() -> FileSystem {
        FileSystem("ext4".to_owned())
    }
}

impl FromStr for FileSystem {
    type Err = String;

    /// Accepts only a plain word, because the name becomes a part of the name of a program, `mkfs.NAME`.
    fn from_str(name: &str) -> Result<FileSystem, String> {
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        if !name.is_empty() && name.bytes().all(is_word) {
            Ok(FileSystem(name.to_owned()))
        } else {
            Err("write the kernel's name of a file system, such as ext4, xfs or btrfs".to_owned())
        }
    }
}

/// A way for the kernel to reach a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum With {
    #[default]
    Auto,
    Loop,
    Nbd,
    Ublk,
}

impl With {
    /// The word for this way on the command line.
    pub fn name(self) -> &'static str {
        match self {
            With::Auto => "auto",
            With::Loop => "loop",
            With::Nbd => "nbd",
            With::Ublk => "ublk",
        }
    }
}

/// Detach block devices, unless they are in use
#[derive(Args, Debug)]
#[command(after_help = "\
detach keeps a device that is mounted or open, and names its users. --stale
removes the devices of daemons that were killed.

Examples:
  sudo dashpot detach /dev/loop0
  sudo dashpot detach --stale")]
pub struct DetachArgs {
    /// A device, its link or mount point, a disk, a volume, or 'all' for all devices of this daemon
    #[arg(
        value_name = "NODE|DIR|DISK|all",
        required_unless_present = "stale",
        value_parser = NonEmptyStringValueParser::new()
    )]
    pub target: Option<String>,
    /// End the I/O in flight with EIO first
    #[arg(long)]
    pub fail_held: bool,
    /// Only devices that no daemon serves any more
    #[arg(long, conflicts_with_all = ["target", "fail_held"])]
    pub stale: bool,
}
