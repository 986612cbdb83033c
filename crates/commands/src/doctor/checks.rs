//! The checks of the doctor: what is done to the bot, and by which rules it is judged.

mod calls;
mod doubles;
mod sockets;
mod webhook;

use std::pin::Pin;

use super::finding::{CheckOutcome, CheckResult, Misdeed};
use super::stage::{BotOptions, Equipment, Habit, Stage, shown};
use crate::failure::CommandFailure;

type RunningCheck<'a> = Pin<Box<dyn Future<Output = CheckResult> + Send + 'a>>;

/// What a bot needs, so that a check says something about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// It makes calls.
    Calls,
    /// It has a session with subscriptions.
    Session,
    /// The same, and it takes the ping times from the handshake.
    Pings,
    /// It has a webhook receiver.
    Receiver,
}

/// A check.
pub struct Check {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// What is done to the bot.
    pub about: &'static str,
    needs: Needs,
    run: for<'a> fn(&'a mut Stage) -> RunningCheck<'a>,
}

/// Every check, in the order of a report.
pub const CHECKS: &[Check] = &[
    Check {
        name: "clean-run",
        about: "nothing goes wrong: a chat message, a donation and a subscription arrive",
        needs: Needs::Calls,
        run: |stage| Box::pin(calls::clean_run(stage)),
    },
    Check {
        name: "token-expiry",
        about: "the access token expires",
        needs: Needs::Calls,
        run: |stage| Box::pin(calls::token_expiry(stage)),
    },
    Check {
        name: "parallel-expiry",
        about: "the access token expires while several calls are under way",
        needs: Needs::Session,
        run: |stage| Box::pin(calls::parallel_expiry(stage)),
    },
    Check {
        name: "refresh-lost",
        about: "the refresh token is used up, but the answer with the new tokens is lost",
        needs: Needs::Calls,
        run: |stage| Box::pin(calls::refresh_lost(stage)),
    },
    Check {
        name: "consent-withdrawn",
        about: "the user withdraws the consent",
        needs: Needs::Calls,
        run: |stage| Box::pin(calls::consent_withdrawn(stage)),
    },
    Check {
        name: "scope-lost",
        about: "the application loses the scope of an event",
        needs: Needs::Session,
        run: |stage| Box::pin(calls::scope_lost(stage)),
    },
    Check {
        name: "rate-limit",
        about: "a call is answered with 429 and Retry-After",
        needs: Needs::Calls,
        run: |stage| Box::pin(calls::rate_limit(stage)),
    },
    Check {
        name: "server-errors",
        about: "three calls are answered with 500",
        needs: Needs::Calls,
        run: |stage| Box::pin(calls::server_errors(stage)),
    },
    Check {
        name: "socket-closed",
        about: "the socket closes, with each reason after which a bot goes on",
        needs: Needs::Session,
        run: |stage| Box::pin(sockets::closed(stage)),
    },
    Check {
        name: "evicted",
        about: "the socket closes, with each reason after which a bot does not go on by itself",
        needs: Needs::Session,
        run: |stage| Box::pin(sockets::evicted(stage)),
    },
    Check {
        name: "own-mistake",
        about: "the socket closes, with each reason that a mistake of the client causes",
        needs: Needs::Session,
        run: |stage| Box::pin(sockets::own_mistake(stage)),
    },
    Check {
        name: "connection-lost",
        about: "the connection is lost without a close frame",
        needs: Needs::Session,
        run: |stage| Box::pin(sockets::lost(stage)),
    },
    Check {
        name: "silent-socket",
        about: "nothing passes the connection any more; takes up to two minutes",
        needs: Needs::Pings,
        run: |stage| Box::pin(sockets::silent(stage)),
    },
    Check {
        name: "late-connected",
        about: "SYSTEM connected comes three seconds late",
        needs: Needs::Session,
        run: |stage| Box::pin(sockets::late_connected(stage)),
    },
    Check {
        name: "doubled-system",
        about: "every SYSTEM message comes twice",
        needs: Needs::Session,
        run: |stage| Box::pin(sockets::doubled_system(stage)),
    },
    Check {
        name: "doubled-event",
        about: "a chat message that the bot answers comes twice",
        needs: Needs::Session,
        run: |stage| Box::pin(doubles::event(stage)),
    },
    Check {
        name: "subway",
        about: "nothing passes the network for longer than pings wait; takes up to three minutes",
        needs: Needs::Pings,
        run: |stage| Box::pin(sockets::subway(stage)),
    },
    Check {
        name: "storm",
        about: "100 events a second for five seconds",
        needs: Needs::Session,
        run: |stage| Box::pin(sockets::storm(stage)),
    },
    Check {
        name: "restart",
        about: "the service stops, and starts again",
        needs: Needs::Session,
        run: |stage| Box::pin(sockets::restart(stage)),
    },
    Check {
        name: "webhook",
        about: "webhook messages come with a wrong signature, another body and an old timestamp",
        needs: Needs::Receiver,
        run: |stage| Box::pin(webhook::tampered(stage)),
    },
    Check {
        name: "doubled-claim",
        about: "a webhook message comes twice",
        needs: Needs::Receiver,
        run: |stage| Box::pin(doubles::claim(stage)),
    },
];

/// Makes a check, and returns its outcome and the end of the bot's output.
///
/// # Errors
/// The sandbox or the bot cannot be started.
pub async fn make(
    check: &Check,
    options: &BotOptions,
) -> Result<(CheckOutcome, Vec<String>), CommandFailure> {
    let is_receiver = check.needs == Needs::Receiver;
    if is_receiver && options.webhook.is_none() {
        let why = "--webhook does not say where its receiver is".to_owned();
        return Ok((CheckOutcome::NotApplicable(why), Vec::new()));
    }
    let fast_pings = options.fast_pings && check.needs == Needs::Pings;
    // The semaphores are never closed.
    let _receiving = if is_receiver { Some(options.receiving.acquire().await) } else { None };
    let starting = options.starting.acquire().await;
    let mut stage = Stage::set(options, Equipment { receiver: is_receiver, fast_pings }).await?;
    let unfit = unfit(check, &mut stage).await?;
    drop(starting);
    let outcome = match unfit {
        Some(outcome) => outcome,
        None => (check.run)(&mut stage).await?,
    };
    stage.bot.stop().await;
    Ok((outcome, stage.bot.output()))
}

/// Waits until the bot has settled. Returns the outcome of a bot about which the check says nothing.
async fn unfit(check: &Check, stage: &mut Stage) -> Result<Option<CheckOutcome>, CommandFailure> {
    if check.needs == Needs::Receiver {
        stage.await_receiver().await;
        return Ok(None);
    }
    let habit = stage.settle().await?;
    Ok(match (habit, stage.bot.ended()) {
        (Habit::Silent, None) => {
            let saw = format!("it made no call within {} seconds", stage.patience.as_secs());
            Some(CheckOutcome::failed(Misdeed::MadeNoCall, saw))
        }
        (Habit::Silent, Some(status)) => {
            let saw = format!("it made no call, and ended with {}", shown(status));
            Some(CheckOutcome::failed(Misdeed::MadeNoCall, saw))
        }
        (Habit::Calls, _) if matches!(check.needs, Needs::Session | Needs::Pings) => {
            Some(CheckOutcome::NotApplicable("the bot has no session with subscriptions".to_owned()))
        }
        _ => None,
    })
}
