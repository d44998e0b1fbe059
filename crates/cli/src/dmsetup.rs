//! `dmsetup`: slow devices, with the commands of the device mapper's own tool.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Make slow devices in dmsetup's words: its delay and error targets
#[derive(Args, Debug)]
#[command(after_help = "\
A table is a line such as '0 2097152 delay /dev/vdb 0 500': sectors of 512
bytes, then DEVICE SECTOR MS for everything, or three of these for reads, writes
and flushes. DEVICE is a block device, a file or ram:SIZE, and the new device
begins at its SECTOR. dmsetup needs root. A device has a daemon until 'remove'.
'suspend' waits for delayed I/O, so no I/O is early; dm-delay releases it early.

Example: reads and writes take half a second longer
  echo \"0 $(blockdev --getsz /dev/vdb) delay /dev/vdb 0 500\" |
  dashpot dmsetup create delayed")]
pub struct DmsetupArgs {
    /// The subcommand.
    #[command(subcommand)]
    pub action: DmAction,
}

/// A subcommand of `dmsetup`.
#[derive(Debug, Subcommand)]
pub enum DmAction {
    /// Make /dev/mapper/NAME
    Create {
        /// The name of the device
        name: String,
        /// The table of the device.
        #[command(flatten)]
        table: TableArgs,
    },
    /// Give a device another table, which 'resume' puts in place
    #[command(visible_alias = "load")]
    Reload {
        /// The device
        name: String,
        /// The table of the device.
        #[command(flatten)]
        table: TableArgs,
    },
    /// Print the table of a device, or of all devices
    Table {
        /// The device
        name: Option<String>,
        /// Print the table that 'resume' will put in place
        #[arg(long)]
        inactive: bool,
    },
    /// Print how many reads, writes and flushes are delayed now
    Status {
        /// The device
        name: Option<String>,
    },
    /// Hold new I/O back, and wait for I/O in flight
    Suspend {
        /// The device
        name: String,
    },
    /// Put the reloaded table in place, if there is one, and let I/O go on
    Resume {
        /// The device
        name: String,
    },
    /// Remove a device, unless it is in use
    Remove {
        /// The device
        name: String,
        /// End the I/O in flight with EIO first
        #[arg(short, long)]
        force: bool,
    },
    /// Print the state of a device, or of all devices
    Info {
        /// The device
        name: Option<String>,
    },
    /// Print the names and the numbers of all devices
    Ls,
}

/// The table of a device, on the command line or in a file.
#[derive(Args, Debug)]
pub struct TableArgs {
    /// The table
    #[arg(long, value_name = "LINE", conflicts_with = "file")]
    pub table: Option<String>,
    /// The file with the table [standard input]
    #[arg(value_name = "TABLE_FILE")]
    pub file: Option<PathBuf>,
}
