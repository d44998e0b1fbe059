//! Threads for work that would make a shard wait.
//!
//! The number of threads acts like a number of lanes: no more requests than this can wait for a medium at
//! once. The caller must limit the number of jobs.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use dashpot_engine::{Errno, Outcome};

use super::blocking::Blocking;
use super::lossy::Batch;

/// An operation on a store. Its buffer comes back in [`Finished`].
#[derive(Debug)]
pub(crate) enum PoolOperation {
    /// Fills the buffer with `length` bytes.
    Read {
        offset: u64,
        length: usize,
        buffer: Vec<u8>,
    },
    Write {
        offset: u64,
        buffer: Vec<u8>,
        fua: bool,
    },
    Zero {
        offset: u64,
        length: u64,
        no_hole: bool,
        fua: bool,
    },
    Trim {
        offset: u64,
        length: u64,
        fua: bool,
    },
    Sync,
    /// A batch of a lossy store's work. The buffer comes back with the bytes that the batch has replaced.
    Settle(Batch),
    /// Panics, as a store with a bug might.
    #[cfg(test)]
    Panic,
}

#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: Outcome,
    /// The buffer of a read or a write. Empty for other operations.
    pub(crate) buffer: Vec<u8>,
}

/// An operation, and the function that takes its result.
pub(crate) struct Job {
    pub(crate) store: Arc<dyn Blocking>,
    pub(crate) operation: PoolOperation,
    /// Set when the caller is gone. From then on, the operation must not start any more, or it could take
    /// effect after later operations.
    pub(crate) cancelled: Arc<AtomicBool>,
    /// Called with the result, on the thread that did the work. It must only pass the result on, because the
    /// thread's next job waits for it.
    pub(crate) finish: Box<dyn FnOnce(Finished) + Send>,
}

impl Job {
    /// Does the work. A panic turns into an error, so neither the zio nor the thread is lost.
    fn run(self) {
        let (operation, store) = (self.operation, &*self.store);
        let failed = |errno| Finished {
            outcome: Err(errno),
            buffer: Vec::new(),
        };
        let finished = if self.cancelled.load(Ordering::Acquire) {
            failed(Errno::Shutdown)
        } else {
            catch_unwind(AssertUnwindSafe(|| operation.run(store)))
                .unwrap_or_else(|_| failed(Errno::Io))
        };
        (self.finish)(finished);
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("operation", &self.operation)
            .finish_non_exhaustive()
    }
}

impl PoolOperation {
    fn run(self, store: &dyn Blocking) -> Finished {
        let mut kept = Vec::new();
        let outcome = match self {
            PoolOperation::Read {
                offset,
                length,
                buffer,
            } => {
                kept = buffer;
                kept.resize(length, 0);
                store.read(offset, &mut kept)
            }
            PoolOperation::Write {
                offset,
                buffer,
                fua,
            } => {
                kept = buffer;
                store.write(offset, &kept, fua)
            }
            PoolOperation::Zero {
                offset,
                length,
                no_hole,
                fua,
            } => store.zero(offset, length, no_hole, fua),
            PoolOperation::Trim {
                offset,
                length,
                fua,
            } => store.trim(offset, length, fua),
            PoolOperation::Sync => store.sync(),
            PoolOperation::Settle(batch) => {
                let settled = batch.run(&mut { store });
                kept = settled.before.unwrap_or_default();
                settled.outcome
            }
            #[cfg(test)]
            PoolOperation::Panic => panic!("a store panics, as this test wants it to"),
        };
        Finished {
            outcome,
            buffer: kept,
        }
    }
}

/// The worker threads. Dropping the pool waits until every submitted job is done.
#[derive(Debug)]
pub(crate) struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts this many threads.
    pub(crate) fn new(threads: usize) -> io::Result<Workers> {
        let mut pool = Workers {
            shared: Arc::default(),
            threads: Vec::with_capacity(threads),
        };
        for number in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let builder = thread::Builder::new().name(format!("dashpot-store-{number}"));
            pool.threads.push(builder.spawn(move || shared.work())?);
        }
        Ok(pool)
    }

    /// Queues a job. Takes a lock, and may have to wake a thread.
    pub(crate) fn submit(&self, job: Job) {
        self.shared.queue().jobs.push_back(job);
        self.shared.changed.notify_one();
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // If the thread has panicked, it has already printed a message.
            let _ = thread.join();
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Shared {
    fn work(&self) {
        while let Some(job) = self.next() {
            job.run();
        }
    }

    /// Waits for a job. Returns `None` once no more jobs will come.
    fn next(&self) -> Option<Job> {
        let idle = |queue: &mut Queue| queue.jobs.is_empty() && !queue.closed;
        let waited = self.changed.wait_while(self.queue(), idle);
        waited
            .unwrap_or_else(PoisonError::into_inner)
            .jobs
            .pop_front()
    }

    /// Locks the queue. The queue is sound even after a panic, because no code that can panic holds its lock.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Barrier, mpsc};
    use std::thread;

    use super::super::tests::file_of;
    use super::{Finished, Job, PoolOperation, Workers};

    #[test]
    fn each_operation_reaches_the_file() {
        let (_directory, file) = file_of(8192);
        let pool = Workers::new(1).unwrap();
        let (sender, receiver) = mpsc::channel::<Finished>();
        let run = |operation| {
            let sender = sender.clone();
            pool.submit(Job {
                store: Arc::clone(&file) as Arc<_>,
                operation,
                cancelled: Arc::default(),
                finish: Box::new(move |finished| sender.send(finished).unwrap()),
            });
            let finished = receiver.recv().unwrap();
            assert_eq!(finished.outcome, Ok(()));
            finished.buffer
        };
        let read = || {
            run(PoolOperation::Read {
                offset: 10,
                length: 3,
                buffer: vec![9; 3],
            })
        };
        let written = run(PoolOperation::Write {
            offset: 10,
            buffer: vec![1, 2, 3],
            fua: true,
        });
        assert_eq!(written, [1, 2, 3]);
        assert_eq!(read(), [1, 2, 3]);
        run(PoolOperation::Zero {
            offset: 10,
            length: 1,
            no_hole: true,
            fua: false,
        });
        run(PoolOperation::Trim {
            offset: 12,
            length: 1,
            fua: false,
        });
        run(PoolOperation::Sync);
        assert_eq!(read(), [0, 2, 0]);
    }

    #[test]
    fn errors_come_back_with_the_buffer() {
        let (_directory, file) = file_of(10);
        let (sender, receiver) = mpsc::channel();
        let pool = Workers::new(1).unwrap();
        pool.submit(Job {
            store: file,
            operation: PoolOperation::Read {
                offset: 8,
                length: 3,
                buffer: Vec::new(),
            },
            cancelled: Arc::default(),
            finish: Box::new(move |finished| sender.send(finished).unwrap()),
        });
        let finished = receiver.recv().unwrap();
        assert_eq!(finished.outcome, Err(dashpot_engine::Errno::Io));
        assert_eq!(finished.buffer.len(), 3);
    }

    /// Three jobs wait at a barrier that opens only if all three run at once.
    #[test]
    fn as_many_jobs_run_at_once_as_there_are_threads() {
        let (_directory, file) = file_of(10);
        let barrier = Arc::new(Barrier::new(3));
        let (sender, receiver) = mpsc::channel();
        let pool = Workers::new(3).unwrap();
        for _ in 0..3 {
            let (barrier, sender) = (Arc::clone(&barrier), sender.clone());
            let finish = move |_| {
                barrier.wait();
                sender
                    .send(thread::current().name().unwrap().to_owned())
                    .unwrap();
            };
            pool.submit(Job {
                store: Arc::clone(&file) as Arc<_>,
                operation: PoolOperation::Sync,
                cancelled: Arc::default(),
                finish: Box::new(finish),
            });
        }
        let names: BTreeSet<String> = receiver.iter().take(3).collect();
        let expected = [0, 1, 2].map(|number| format!("dashpot-store-{number}"));
        assert_eq!(names, BTreeSet::from(expected));
    }

    #[test]
    fn a_job_that_panics_ends_with_an_error_and_its_thread_goes_on() {
        let (_directory, file) = file_of(10);
        let (sender, receiver) = mpsc::channel();
        let pool = Workers::new(1).unwrap();
        for operation in [PoolOperation::Panic, PoolOperation::Sync] {
            let sender = sender.clone();
            pool.submit(Job {
                store: Arc::clone(&file) as Arc<_>,
                operation,
                cancelled: Arc::default(),
                finish: Box::new(move |finished| sender.send(finished.outcome).unwrap()),
            });
        }
        assert_eq!(receiver.recv(), Ok(Err(dashpot_engine::Errno::Io)));
        assert_eq!(receiver.recv(), Ok(Ok(())));
    }

    #[test]
    fn a_pool_that_goes_has_done_its_jobs() {
        let (_directory, file) = file_of(10);
        let (sender, receiver) = mpsc::channel();
        let pool = Workers::new(1).unwrap();
        for number in 0..100 {
            let sender = sender.clone();
            pool.submit(Job {
                store: Arc::clone(&file) as Arc<_>,
                operation: PoolOperation::Read {
                    offset: 0,
                    length: 10,
                    buffer: Vec::new(),
                },
                cancelled: Arc::default(),
                finish: Box::new(move |_| sender.send(number).unwrap()),
            });
        }
        drop((pool, sender));
        assert!(receiver.iter().eq(0..100));
    }
}
