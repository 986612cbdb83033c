//! A reader thread. It runs each request in a transaction of its own, so that all statements of a request see
//! the same data.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use super::connection::SqliteConnection;
use super::control::control;
use super::request::Request;
use crate::tx::{Link, Tx};

/// Runs requests until the queue is closed and empty. The threads take turns at waiting on the queue.
pub(super) fn run(connection: SqliteConnection, queue: &Mutex<Receiver<Request>>) {
    let interrupt = Arc::new(connection.interrupt_handle());
    let mut tx = Tx::new(Link::Sqlite(connection));
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(request) = next else { return };
        if !request.start(Some(interrupt.clone())) {
            continue;
        }
        match control(&mut tx, "BEGIN") {
            Err(error) => request.refuse(error),
            Ok(()) => {
                let executed = request.run(&mut tx);
                // A read wrote nothing, so both ends are right.
                let ended = control(&mut tx, "COMMIT").or_else(|_| control(&mut tx, "ROLLBACK"));
                executed.answer(Ok(()));
                if let Err(error) = ended {
                    tracing::error!(%error, "failed to end a read transaction");
                }
            }
        }
    }
}
