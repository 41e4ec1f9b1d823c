//! The one writer: a thread that owns one connection and makes all transactions that wait
//! durable in one transaction of the database (group commit), then tells each.
//!
//! A thread, not a task: what was submitted becomes durable even if the program's runtime is
//! busy or has ended. It decides about nothing but epochs.

mod group;
mod patience;
mod queue;

use std::fs::File;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::db::{Connection, Either};
use crate::error::{OpenError, Problem};
use crate::open::{PostgresWay, SqliteWay};
use queue::Next;
pub(crate) use queue::{Epoch, Job, Queue};

use group::Grouper;

/// The writer, while anybody may write. It ends when the last handle is gone; what waits by
/// then is still written.
#[derive(Debug)]
pub(crate) struct Writer {
    pub(crate) queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// How a writer gets its connection.
pub(crate) type Connects = Either<SqliteWay, Box<PostgresWay>>;

impl Connects {
    /// A new connection, as far as the database is there.
    pub(crate) async fn connect(&self) -> Result<Connection, Problem> {
        match self {
            Self::Sqlite(way) => way.connect().await,
            Self::Postgres(way) => way.connect().await,
        }
    }

    /// The first connection: brings the tables to the version that is known.
    async fn open(&self) -> Result<Connection, OpenError> {
        match self {
            Self::Sqlite(way) => way.open().await,
            Self::Postgres(way) => way.open().await,
        }
    }
}

impl Writer {
    /// Starts the writer. It keeps the lock until it has ended.
    pub(crate) async fn start(connects: Connects, lock: Option<File>) -> Result<Self, OpenError> {
        let queue = Arc::new(Queue::default());
        let (opened, waits) = oneshot::channel();
        let of_thread = queue.clone();
        let run = move || live(&connects, &of_thread, opened, lock);
        let failed = |why: String| OpenError::Failed { store: "(its writer)".to_owned(), why };
        let thread = std::thread::Builder::new().name("midturn-store".to_owned()).spawn(run);
        let thread = thread.map_err(|error| failed(error.to_string()))?;
        waits.await.map_err(|_| failed("it ended at once".to_owned()))??;
        Ok(Self { queue, thread: Mutex::new(Some(thread)) })
    }

    /// Writes what waits, closes the connection and gives the lock back.
    pub(crate) async fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // The thread ends by itself and has nothing more to say.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// The writer's thread, from the first connection to the last transaction.
fn live(
    connects: &Connects,
    queue: &Queue,
    opened: oneshot::Sender<Result<(), OpenError>>,
    lock: Option<File>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let why = error.to_string();
            // Who opened has gone if this fails, and so does the thread.
            let _ = opened.send(Err(OpenError::Failed { store: "(its writer)".to_owned(), why }));
            return;
        }
    };
    runtime.block_on(async {
        match connects.open().await {
            Ok(connection) => {
                if opened.send(Ok(())).is_ok() {
                    serve(Grouper::new(connects.clone(), connection), queue).await;
                }
                drop(lock);
            }
            Err(error) => {
                // Whoever is told may try again at once.
                drop(lock);
                // As above.
                let _ = opened.send(Err(error));
            }
        }
    });
}

async fn serve(mut grouper: Grouper, queue: &Queue) {
    loop {
        let Some(next) = next(queue).await else {
            grouper.probe(queue).await;
            continue;
        };
        match next {
            Next::Group(writes) => grouper.commit(writes, queue).await,
            Next::Epoch(epoch) => grouper.set_epoch(epoch, queue).await,
            Next::End => return grouper.close().await,
        }
    }
}

/// What comes next. `None`: nothing comes while the store is in trouble, so it is time to look
/// whether it still is: mail is refused as long as nobody knows better.
async fn next(queue: &Queue) -> Option<Next> {
    match queue.trouble() {
        None => Some(queue.next().await),
        Some(_) => tokio::time::timeout(patience::PAUSE_MAX, queue.next()).await.ok(),
    }
}
