//! A reader thread: each request in one deferred transaction, so that all its statements see the same moment.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use super::connection::{Connection, control};
use super::request::Request;
use crate::engine::{Link, Tx};

/// Runs requests until the queue is closed and empty. The threads take turns at waiting on the queue.
pub(super) fn run(connection: Connection, queue: &Mutex<Receiver<Box<dyn Request>>>) {
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
                let settled = request.run(&mut tx);
                // Nothing was written, so how the transaction ends decides nothing; but it must end.
                let ended = control(&mut tx, "COMMIT").or_else(|_| control(&mut tx, "ROLLBACK"));
                settled.answer(Ok(()));
                if let Err(error) = ended {
                    tracing::error!(%error, "a read transaction would not end");
                }
            }
        }
    }
}
