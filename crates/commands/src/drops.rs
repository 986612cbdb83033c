//! `stagedoor drops`: reports watched minutes and claims over the platform API, and shows the result. A
//! sandbox has no platform that reports them.

use std::fmt::Write;
use std::time::Duration;

use clap::{Args, Subcommand};
use http::Method;
use serde_json::{Value, json};

use crate::client::Failure;
use crate::failure::CommandFailure;
use crate::target::{Target, TargetOptions};

/// The commands of `stagedoor drops`.
#[derive(Debug, Subcommand)]
pub enum DropsCommand {
    /// Reports that a viewer watched a channel, and shows the viewer's progress.
    ///
    /// Minutes count for the campaigns of the category of the channel's live.
    Watch(WatchOptions),
    /// Claims a reward for a viewer.
    Claim(ClaimOptions),
}

/// `stagedoor drops watch`
#[derive(Debug, Args)]
pub struct WatchOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// The watched channel. It must be on air.
    #[arg(long, value_name = "CHANNEL_ID")]
    channel: String,

    /// The channel of the viewer.
    #[arg(long, value_name = "CHANNEL_ID")]
    viewer: String,

    /// The watched minutes, 1 to 1440.
    #[arg(long, value_name = "MINUTES", value_parser = clap::value_parser!(i64).range(1..=WATCHING_MINUTES_MAX))]
    minutes: i64,
}

/// `stagedoor drops claim`
#[derive(Debug, Args)]
pub struct ClaimOptions {
    #[command(flatten)]
    target: TargetOptions,

    /// The campaign.
    #[arg(long, value_name = "CAMPAIGN_ID")]
    campaign: String,

    /// The reward of the campaign.
    #[arg(long, value_name = "REWARD_ID")]
    reward: String,

    /// The channel of the viewer.
    #[arg(long, value_name = "CHANNEL_ID")]
    viewer: String,
}

const WATCHING_MINUTES_MAX: i64 = domain::limits::WATCHING_MINUTES_MAX;

/// Runs the command, and returns its output.
///
/// # Errors
/// A sentence for the developer, with the next step.
pub async fn run(command: &DropsCommand) -> Result<String, CommandFailure> {
    match command {
        DropsCommand::Watch(options) => watch(options).await,
        DropsCommand::Claim(options) => claim(options).await,
    }
}

async fn watch(options: &WatchOptions) -> Result<String, CommandFailure> {
    let WatchOptions { target, channel, viewer, minutes } = options;
    let platform = Platform::open(target).await?;
    let body = json!({ "channelId": channel, "viewerChannelId": viewer, "minutes": minutes });
    let reported = platform.call(Method::POST, "/platform/v1/drops/watching", Some(&body)).await?;
    let campaigns = reported["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if campaigns.is_empty() {
        return Err(uncounted(channel, &reported).into());
    }
    let mut out = format!("{viewer} watched {channel} for {minutes} min.\n");
    for campaign in campaigns {
        let id = text(&campaign["campaignId"]);
        let path = format!("/platform/v1/drops/campaigns/{id}/progress/{viewer}");
        let progress = platform.call(Method::GET, &path, None).await?;
        // Writing into a String cannot fail.
        let _ = write_progress(&mut out, id, viewer, &progress);
    }
    Ok(out)
}

/// Explains why minutes counted for no campaign, and how to change that.
fn uncounted(channel: &str, reported: &Value) -> String {
    let next = match (&reported["onAir"], &reported["categoryId"]) {
        (Value::Bool(true), Value::String(category)) => format!(
            "{channel} is on air with the category {category}, and no campaign of that category counts it now. Look at \
             GET /platform/v1/drops/campaigns/{{campaignId}}: categoryId, startDate and endDate, channelIds"
        ),
        (Value::Bool(true), _) => format!(
            "{channel} is on air without a category. Give it the campaign's: PUT /platform/v1/channels/{channel}/live \
             with categoryId"
        ),
        _ => format!(
            "{channel} is not on air. Put it on air with the campaign's category: PUT \
             /platform/v1/channels/{channel}/live with categoryId"
        ),
    };
    format!("the minutes counted for nothing: {next}")
}

fn write_progress(out: &mut String, campaign: &str, viewer: &str, progress: &Value) -> std::fmt::Result {
    writeln!(out, "\ncampaign {campaign}: {} min watched", progress["minutes"])?;
    for reward in progress["rewards"].as_array().into_iter().flatten() {
        let (id, name) = (text(&reward["rewardId"]), text(&reward["rewardName"]));
        write!(out, "  {id} ({name}): ")?;
        if reward["claimed"] == true {
            writeln!(out, "claimed, {}", text(&reward["claimId"]))?;
        } else if reward["reached"] == true {
            writeln!(out, "can be claimed:")?;
            writeln!(out, "    stagedoor drops claim --campaign {campaign} --reward {id} --viewer {viewer}")?;
        } else {
            writeln!(out, "{} of {} min left", reward["minutesLeft"], reward["watchMinutes"])?;
        }
    }
    Ok(())
}

async fn claim(options: &ClaimOptions) -> Result<String, CommandFailure> {
    let ClaimOptions { target, campaign, reward, viewer } = options;
    let body = json!({ "campaignId": campaign, "rewardId": reward, "channelId": viewer });
    let platform = Platform::open(target).await?;
    let claim = platform.call(Method::POST, "/platform/v1/drops/claims", Some(&body)).await?;
    Ok(format!(
        "{viewer} claimed {reward} of {campaign}: claim {}, {}.\nIts publisher finds it with GET \
         /open/v1/drops/reward-claims.\n",
        text(&claim["claimId"]),
        text(&claim["fulfillmentState"])
    ))
}

/// The platform API.
struct Platform(Target);

impl Platform {
    async fn open(options: &TargetOptions) -> Result<Self, CommandFailure> {
        options.find_platform().await.map(Self)
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, CommandFailure> {
        let answer = self.0.attempt(method, path, body, Duration::ZERO).await;
        answer.map_err(|failure| match failure {
            failure if failure.is_unknown_path() => {
                let base = self.0.server().base();
                CommandFailure::Failed(format!(
                    "{failure}\n{base} has no such thing: its platform API may be off, or listen elsewhere \
                     (--platform-listen)"
                ))
            }
            // The call is right in itself.
            Failure::Refused { reason: Some(ref reason), .. } if reason.contains("rule=claimed") => {
                CommandFailure::Failed(failure.to_string())
            }
            failure => self.0.explained(failure),
        })
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
