//! The kernel's events in the lives of tasks, and the decoders of their records.

use super::format::{Field, Format, FormatError};
use crate::cgroup::Hierarchy;
use crate::follower::TaskEvent;
use crate::io::Comm;

/// The facts about tasks that a watch needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The processes of tasks, and their names.
    pub(crate) processes: bool,
    /// The hierarchy of the cgroups of tasks; `None` if cgroups are not needed, or the host has none.
    pub(crate) hierarchy: Option<Hierarchy>,
}

impl Facts {
    /// The facts, as far as this host has them.
    pub(crate) fn of(processes: bool, cgroups: bool) -> Facts {
        Facts {
            processes,
            hierarchy: cgroups.then(Hierarchy::find).flatten(),
        }
    }
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Made,
    Named,
    Moved,
    Ended,
}

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Made, Kind::Named, Kind::Moved, Kind::Ended];

    /// The kernel's name for the event, with the event's group.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Kind::Made => "task/task_newtask",
            Kind::Named => "task/task_rename",
            Kind::Moved => "cgroup/cgroup_attach_task",
            Kind::Ended => "sched/sched_process_exit",
        }
    }

    /// Whether these facts depend on this event.
    pub(crate) fn is_needed(self, facts: Facts) -> bool {
        match self {
            Kind::Made | Kind::Ended => facts.processes || facts.hierarchy.is_some(),
            Kind::Named => facts.processes,
            Kind::Moved => facts.hierarchy.is_some(),
        }
    }

    /// A filter for the kernel that passes only moves of tasks in the hierarchy of the facts.
    pub(crate) fn filter(self, facts: Facts) -> Option<String> {
        let hierarchy = facts.hierarchy.filter(|_| self == Kind::Moved)?;
        Some(format!("dst_root == {}", hierarchy.id))
    }
}

/// Decodes the records of one kind of event.
#[derive(Debug)]
pub(crate) enum Decoder {
    Made {
        pid: Field,
        maker: Field,
        flags: Field,
        comm: Field,
    },
    Named {
        pid: Field,
        comm: Field,
    },
    Moved {
        pid: Field,
        cgroup: Field,
    },
    Ended {
        pid: Field,
    },
}

impl Decoder {
    /// Finds the fields of one kind of event in its format.
    pub(crate) fn new(kind: Kind, format: &Format) -> Result<Decoder, FormatError> {
        let pid = format.field("pid")?;
        Ok(match kind {
            Kind::Made => Decoder::Made {
                pid,
                maker: format.field("common_pid")?,
                flags: format.field("clone_flags")?,
                comm: format.field("comm")?,
            },
            Kind::Named => Decoder::Named {
                pid,
                comm: format.field("newcomm")?,
            },
            Kind::Moved => Decoder::Moved {
                pid,
                cgroup: format.text("dst_path")?,
            },
            Kind::Ended => Decoder::Ended { pid },
        })
    }

    /// Reads a record; `None` if the record is too short.
    pub(crate) fn read(&self, record: &[u8]) -> Option<TaskEvent> {
        let number = |field: &Field| field.number(record).map(|pid| pid as i32);
        Some(match self {
            Decoder::Made {
                pid,
                maker,
                flags,
                comm,
            } => TaskEvent::Made {
                pid: number(pid)?,
                maker: number(maker)?,
                flags: flags.number(record)?,
                comm: Comm::new(comm.bytes(record)?),
            },
            Decoder::Named { pid, comm } => TaskEvent::Named {
                pid: number(pid)?,
                comm: Comm::new(comm.bytes(record)?),
            },
            Decoder::Moved { pid, cgroup } => TaskEvent::Moved {
                pid: number(pid)?,
                cgroup: String::from_utf8_lossy(cgroup.text(record)?).into(),
            },
            Decoder::Ended { pid } => TaskEvent::Ended { pid: number(pid)? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracefs::fixtures::{KERNELS, format, record};

    #[test]
    fn every_kernel_s_records_are_read() {
        let mut read = 0;
        for (kernel, kind) in KERNELS
            .iter()
            .flat_map(|kernel| Kind::ALL.map(|kind| (kernel, kind)))
        {
            let (_, name) = kind.path().split_once('/').expect("a group");
            let Some(format) = format(kernel, name) else {
                continue;
            };
            let decoder = Decoder::new(kind, &format).expect("a decoder");
            let fields = [
                ("common_pid", 4711_i32.to_ne_bytes().to_vec()),
                ("pid", 4712_i32.to_ne_bytes().to_vec()),
                ("clone_flags", 0x1_0f00_u64.to_ne_bytes().to_vec()),
                ("comm", b"sh".to_vec()),
                ("newcomm", b"dd".to_vec()),
            ];
            let mut bytes = record(&format, &fields);
            if kind == Kind::Moved {
                let place = format.text("dst_path").expect("a path").offset;
                bytes[place..place + 4].copy_from_slice(&((7 << 16) | 64_u32).to_ne_bytes());
                bytes.extend(b"/a/bcd\0");
            }
            let (pid, maker, flags) = (4712, 4711, 0x1_0f00);
            let cgroup = "/a/bcd".into();
            let expected = match kind {
                Kind::Made => {
                    let comm = Comm::new(b"sh");
                    TaskEvent::Made {
                        pid,
                        maker,
                        flags,
                        comm,
                    }
                }
                Kind::Named => {
                    let comm = Comm::new(b"dd");
                    TaskEvent::Named { pid, comm }
                }
                Kind::Moved => TaskEvent::Moved { pid, cgroup },
                Kind::Ended => TaskEvent::Ended { pid },
            };
            assert_eq!(decoder.read(&bytes), Some(expected));
            assert_eq!(decoder.read(&bytes[..8]), None, "too short");
            read += 1;
        }
        assert_eq!(read, 2 * 4, "two kernels' descriptions have these events");
    }
}
