//! The checks of the doctor: what is done to the bot, and by which rules it is judged.

mod calls;
mod sockets;

use std::pin::Pin;

use super::finding::{Judged, Judgement, Misdeed};
use super::stage::{BotOptions, Habit, Stage, shown};
use crate::failure::CommandFailure;

type Judging<'a> = Pin<Box<dyn Future<Output = Judged> + Send + 'a>>;

/// A check.
pub struct Check {
    /// Its name on the command line and in reports.
    pub name: &'static str,
    /// What is done to the bot.
    pub about: &'static str,
    /// Whether it says something only about a bot with subscriptions.
    needs_session: bool,
    run: for<'a> fn(&'a mut Stage) -> Judging<'a>,
}

/// Every check, in the order of a report.
pub const CHECKS: &[Check] = &[
    Check {
        name: "clean-run",
        about: "nothing goes wrong: a chat message, a donation and a subscription arrive",
        needs_session: false,
        run: |stage| Box::pin(calls::clean_run(stage)),
    },
    Check {
        name: "token-expiry",
        about: "the access token expires",
        needs_session: false,
        run: |stage| Box::pin(calls::token_expiry(stage)),
    },
    Check {
        name: "refresh-lost",
        about: "the refresh token is used up, but the answer with the new tokens is lost",
        needs_session: false,
        run: |stage| Box::pin(calls::refresh_lost(stage)),
    },
    Check {
        name: "consent-withdrawn",
        about: "the user withdraws the consent",
        needs_session: false,
        run: |stage| Box::pin(calls::consent_withdrawn(stage)),
    },
    Check {
        name: "scope-lost",
        about: "the application loses the scope of an event",
        needs_session: true,
        run: |stage| Box::pin(calls::scope_lost(stage)),
    },
    Check {
        name: "rate-limit",
        about: "a call is answered with 429 and Retry-After",
        needs_session: false,
        run: |stage| Box::pin(calls::rate_limit(stage)),
    },
    Check {
        name: "server-errors",
        about: "three calls are answered with 500",
        needs_session: false,
        run: |stage| Box::pin(calls::server_errors(stage)),
    },
    Check {
        name: "socket-closed",
        about: "the socket closes",
        needs_session: true,
        run: |stage| Box::pin(sockets::closed(stage)),
    },
    Check {
        name: "restart",
        about: "the service stops, and starts again",
        needs_session: true,
        run: |stage| Box::pin(sockets::restart(stage)),
    },
];

/// Makes a check, and returns its judgement and the end of the bot's output.
///
/// # Errors
/// The sandbox or the bot cannot be started.
pub async fn make(check: &Check, options: &BotOptions) -> Result<(Judgement, Vec<String>), CommandFailure> {
    let mut stage = Stage::set(options, None).await?;
    let habit = stage.settle().await?;
    let judgement = match (habit, stage.bot.ended()) {
        (Habit::Silent, None) => {
            let saw = format!("it made no call within {} seconds", options.patience.as_secs());
            Judgement::failed(Misdeed::MadeNoCall, saw)
        }
        (Habit::Silent, Some(status)) => Judgement::failed(
            Misdeed::MadeNoCall,
            format!("it made no call, and ended with {}", shown(status)),
        ),
        (Habit::Calls, _) if check.needs_session => {
            Judgement::NotApplicable("the bot has no session with subscriptions".to_owned())
        }
        _ => (check.run)(&mut stage).await?,
    };
    stage.bot.stop().await;
    Ok((judgement, stage.bot.output()))
}
