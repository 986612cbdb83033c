//! Passes signals on to the command.

use std::future::poll_fn;
use std::io;
use std::process::ExitStatus;
use std::task::Poll;

use rustix::process::{Pid, Signal as Number, kill_process};
use rustix::termios::isatty;
use tokio::process::Child;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that are passed on.
pub(super) struct Signals {
    passed: Vec<(Number, Signal)>,
    /// The keys of a terminal send these to the command as well, so they are not passed on there.
    keys: Vec<(Number, Signal)>,
    has_terminal: bool,
}

impl Signals {
    /// Signals are kept from now on.
    pub fn listen() -> Result<Self, String> {
        let listen = |number: Number| {
            let listened = signal(SignalKind::from_raw(number.as_raw()));
            listened
                .map(|signal| (number, signal))
                .map_err(|error| format!("failed to listen for signals: {error}"))
        };
        let each =
            |numbers: &[Number]| numbers.iter().map(|number| listen(*number)).collect::<Result<_, _>>();
        Ok(Self {
            passed: each(&[Number::TERM, Number::HUP, Number::USR1, Number::USR2, Number::WINCH])?,
            keys: each(&[Number::INT, Number::QUIT])?,
            has_terminal: isatty(io::stdin()),
        })
    }

    /// Waits for the end of the command, and passes signals on meanwhile.
    pub async fn pass_on(&mut self, mut child: Child) -> io::Result<ExitStatus> {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        loop {
            let number = tokio::select! {
                status = child.wait() => return status,
                number = next(&mut self.passed) => number,
                number = next(&mut self.keys) => match self.has_terminal {
                    true => continue,
                    false => number,
                },
            };
            if let Some(pid) = pid {
                // The command may have ended meanwhile.
                let _ = kill_process(pid, number);
            }
        }
    }
}

/// The next of these signals.
async fn next(signals: &mut [(Number, Signal)]) -> Number {
    poll_fn(|context| {
        let received = signals.iter_mut().find_map(|(number, signal)| match signal.poll_recv(context) {
            Poll::Ready(_) => Some(*number),
            Poll::Pending => None,
        });
        received.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}
