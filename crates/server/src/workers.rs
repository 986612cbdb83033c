//! The threads that answer requests where nothing but this process is asked for the answer (docs/decisions/0019). Each has a
//! runtime of its own, and a connection stays with one of them.

use std::io;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;

/// Where connections are served. The threads end when this is dropped, with all that runs on them.
pub(crate) struct Workers {
    threads: Vec<Worker>,
    /// How many connections were taken.
    taken: AtomicUsize,
}

struct Worker {
    runtime: Handle,
    /// The thread ends when this does.
    _running: oneshot::Sender<()>,
}

impl Workers {
    /// One thread for each core.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub fn of_each_core() -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let threads = (0..cores).map(Worker::start).collect::<io::Result<_>>()?;
        Ok(Self { threads, taken: AtomicUsize::new(0) })
    }

    /// No threads: connections stay on the runtime that accepts them.
    pub fn none() -> Self {
        Self { threads: Vec::new(), taken: AtomicUsize::new(0) }
    }

    /// Serves a connection on the thread whose turn it is.
    pub fn take<S>(&self, stream: TcpStream, serve: impl FnOnce(TcpStream) -> S + Send + 'static)
    where
        S: Future<Output = ()> + Send + 'static,
    {
        let turn = self.taken.fetch_add(1, Ordering::Relaxed).checked_rem(self.threads.len());
        let Some(worker) = turn.and_then(|turn| self.threads.get(turn)) else {
            tokio::spawn(serve(stream));
            return;
        };
        // A stream hears of its readiness from the runtime that it was made on, so it has to be made anew.
        match stream.into_std() {
            Ok(stream) => drop(worker.runtime.spawn(async move {
                match TcpStream::from_std(stream) {
                    Ok(stream) => serve(stream).await,
                    Err(error) => lost(&error),
                }
            })),
            Err(error) => lost(&error),
        }
    }
}

impl Worker {
    fn start(number: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (running, ended) = oneshot::channel();
        let handle = runtime.handle().clone();
        let thread = thread::Builder::new().name(format!("worker-{number}"));
        thread.spawn(move || run(runtime, ended))?;
        Ok(Self { runtime: handle, _running: running })
    }
}

fn run(runtime: Runtime, ended: oneshot::Receiver<()>) {
    // Nothing is ever sent.
    let _ = runtime.block_on(ended);
    // A password may still be at work on a thread beside: its answer is wanted no more.
    runtime.shutdown_background();
}

fn lost(error: &io::Error) {
    tracing::debug!(%error, "a connection could not be handed to the thread that serves it");
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;

    /// Answers a byte with the same byte and ends at the end of what comes; tells the thread that does so.
    async fn echo(mut stream: TcpStream, tell: mpsc::UnboundedSender<Option<String>>) {
        let _ = tell.send(thread::current().name().map(str::to_owned));
        while let Ok(byte) = stream.read_u8().await {
            stream.write_u8(byte).await.expect("it is taken");
        }
    }

    async fn connected(
        listener: &TcpListener,
        workers: &Workers,
        tell: &mpsc::UnboundedSender<Option<String>>,
    ) -> TcpStream {
        let client = TcpStream::connect(listener.local_addr().expect("bound")).await.expect("connects");
        let (stream, _) = listener.accept().await.expect("accepts");
        let tell = tell.clone();
        workers.take(stream, move |stream| echo(stream, tell));
        client
    }

    #[tokio::test]
    async fn connections_are_served_by_each_thread_in_turn_and_end_with_them() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let (tell, mut told) = mpsc::unbounded_channel();
        let workers = Workers::of_each_core().expect("threads");
        let cores = workers.threads.len();
        let mut clients = Vec::new();
        for number in 0..cores + 1 {
            let mut client = connected(&listener, &workers, &tell).await;
            client.write_u8(7).await.expect("it is taken");
            assert_eq!(client.read_u8().await.expect("an answer"), 7);
            let thread = told.recv().await.expect("it tells its thread");
            assert_eq!(thread, Some(format!("worker-{}", number % cores)));
            clients.push(client);
        }
        drop(workers);
        for mut client in clients {
            assert!(client.read_u8().await.is_err(), "what served it has ended");
        }
    }

    #[tokio::test]
    async fn without_threads_connections_stay_where_they_were_accepted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        let (tell, mut told) = mpsc::unbounded_channel();
        let mut client = connected(&listener, &Workers::none(), &tell).await;
        client.write_u8(7).await.expect("it is taken");
        assert_eq!(client.read_u8().await.expect("an answer"), 7);
        assert_eq!(told.recv().await.expect("told").as_deref(), thread::current().name());
    }
}
