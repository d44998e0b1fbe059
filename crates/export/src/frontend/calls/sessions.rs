//! The sessions of a disk: one for each program that acts on the disk's files. The program is the client, with
//! all its processes and threads, because a process lives too briefly, and a thread chooses its own name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use super::Session;
use super::answers::Answers;
use super::jobs::Jobs;
use super::transport::{Sender, Transport};

/// Hands a session to the disk's shard, with the name of its client.
pub(crate) type Connect = Box<dyn Fn(String, Session) + Send + Sync>;

/// The senders of calls to a disk's shard.
pub(super) struct Sessions {
    connect: Connect,
    answers: Arc<Answers>,
    jobs: Jobs,
    /// The senders by the names of their clients.
    senders: Mutex<HashMap<String, Arc<Sender>>>,
}

impl Sessions {
    pub(super) fn new(connect: Connect, answers: Arc<Answers>, jobs: Jobs) -> Sessions {
        Sessions {
            connect,
            answers,
            jobs,
            senders: Mutex::default(),
        }
    }

    /// The sender of a program's session, and whether the disk has too many programs to tell this one apart.
    /// The first call of a program begins its session, which fails if dashpot has no descriptors left. Programs
    /// that are not known share a session.
    pub(super) fn of_program(&self, program: Option<&str>) -> Result<(Arc<Sender>, bool), Errno> {
        let mut senders = self.senders();
        let own = program.map(client);
        if let Some(sender) = own.as_ref().and_then(|own| senders.get(own)) {
            return Ok((Arc::clone(sender), false));
        }
        let told_apart = senders.len() - usize::from(senders.contains_key(OTHERS));
        let is_crowded = own.is_some() && told_apart == PROGRAMS_MAX;
        let name = own.filter(|_| !is_crowded);
        let name = name.unwrap_or_else(|| OTHERS.to_owned());
        let sender = match senders.get(&name) {
            Some(sender) => Arc::clone(sender),
            None => Arc::clone(senders.entry(name.clone()).or_insert(self.begin(name)?)),
        };
        Ok((sender, is_crowded))
    }

    fn begin(&self, client: String) -> Result<Arc<Sender>, Errno> {
        let (sender, transport) = Transport::new(Arc::clone(&self.answers), self.jobs.clone())?;
        (self.connect)(client, Session { transport });
        Ok(Arc::new(sender))
    }

    /// All senders.
    pub(super) fn all(&self) -> Vec<Arc<Sender>> {
        self.senders().values().map(Arc::clone).collect()
    }

    fn senders(&self) -> MutexGuard<'_, HashMap<String, Arc<Sender>>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of a program as a client.
fn client(program: &str) -> String {
    format!("exe={program}")
}

/// How many programs a disk tells apart. With the others, they are as many clients as the engine tells apart.
pub(super) const PROGRAMS_MAX: usize = dashpot_engine::CLIENTS_TOLD_APART as usize - 1;
/// The name that all further programs share, and those whose names are not known.
pub(super) const OTHERS: &str = "other";
