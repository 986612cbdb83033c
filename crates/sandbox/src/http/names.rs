//! Finds people, channels and applications by what a developer calls them.

use domain::application::Application;
use domain::{ChannelId, ClientId};
use service::channel_admin::{ChannelDetails, ChannelFilter};
use service::{Error, Service};

use super::answer::Problem;

/// Number of rows that one query reads.
const PAGE_ROWS: i64 = 100;
/// Maximum number of channels that are searched for a part of a name.
const SEARCHED_MAX: usize = 1_000;
/// Maximum number of candidates in a refusal.
const SHOWN_MAX: usize = 20;

/// The channel of an id, a login, a channel name, or an ending of an id after a dash: `haneul` for
/// `streamer-haneul`.
///
/// # Errors
/// No channel or several channels have the name. The message names the field and the candidates.
pub(super) async fn channel(service: &Service, field: &str, name: &str) -> Result<ChannelId, Problem> {
    if let Ok(id) = ChannelId::parse("channelId", name)
        && service.channel_details(&id).await.is_ok()
    {
        return Ok(id);
    }
    for filter in [ChannelFilter::Login(name.to_owned()), ChannelFilter::Name(name.to_owned())] {
        let page = service.list_channels(filter, PAGE_ROWS, None).await?;
        if let Some(id) = only(field, name, ids(&page.channels))? {
            return Ok(ChannelId::stored(id));
        }
    }
    let all = channels(service).await?;
    let ending = ids(&all).into_iter().filter(|id| is_ending(id, name)).collect();
    match only(field, name, ending)? {
        Some(id) => Ok(ChannelId::stored(id)),
        None => Err(unknown(field, "channel", name, &ids(&all))),
    }
}

/// The application of an id, a name, or an ending of an id after a dash.
///
/// # Errors
/// As [`channel`].
pub(super) async fn application(service: &Service, field: &str, name: &str) -> Result<Application, Problem> {
    let all = applications(service).await?;
    let of = |matches: &dyn Fn(&Application) -> bool| {
        let found = all.iter().filter(|application| matches(application));
        found.map(|application| application.client_id.to_string()).collect::<Vec<_>>()
    };
    let by_id = of(&|application| application.client_id.as_str() == name);
    let by_name = of(&|application| application.name == name);
    let by_ending = of(&|application| is_ending(application.client_id.as_str(), name));
    for found in [by_id, by_name, by_ending] {
        if let Some(id) = only(field, name, found)? {
            let found = service.application(&ClientId::stored(id)).await?;
            return found.ok_or_else(|| unknown(field, "application", name, &of(&|_| true)));
        }
    }
    Err(unknown(field, "application", name, &of(&|_| true)))
}

/// The id of a webhook or, for the webhook of an application, the id of the application.
///
/// # Errors
/// As [`channel`].
pub(super) async fn webhook(service: &Service, field: &str, name: &str) -> Result<String, Problem> {
    for application in applications(service).await? {
        let webhook = service.webhook_details(&application.client_id).await;
        if webhook.is_ok_and(|details| details.webhook.webhook_id.as_str() == name) {
            return Ok(name.to_owned());
        }
    }
    Ok(self::application(service, field, name).await?.client_id.to_string())
}

/// The oldest application, if none is named. An application that is registered later does not take its place.
///
/// # Errors
/// There is no application.
pub(super) async fn first_application(service: &Service, field: &str) -> Result<Application, Problem> {
    let first = applications(service).await?.into_iter().next();
    first.ok_or_else(|| Problem::invalid(field, "there is no application yet"))
}

/// The person that stands for a streamer if none is named: the first person who can sign in.
pub(super) async fn first_person(service: &Service, field: &str) -> Result<ChannelId, Problem> {
    let first = service.people(1).await?.into_iter().next();
    first
        .map(|person| person.channel_id)
        .ok_or_else(|| Problem::invalid(field, "must name a channel, because there is no person yet"))
}

/// The person that stands for a viewer of a channel if none is named: the last person besides its owner.
pub(super) async fn last_person_besides(
    service: &Service,
    field: &str,
    channel: &ChannelId,
) -> Result<ChannelId, Problem> {
    let people = service.people(PAGE_ROWS).await?;
    let last = people.into_iter().rev().find(|person| person.channel_id != *channel);
    last.map(|person| person.channel_id)
        .ok_or_else(|| Problem::invalid(field, "must name a channel, because there is no second person yet"))
}

async fn channels(service: &Service) -> Result<Vec<ChannelDetails>, Error> {
    let (mut all, mut next) = (Vec::new(), None);
    loop {
        let page = service.list_channels(ChannelFilter::All, PAGE_ROWS, next.as_deref()).await?;
        all.extend(page.channels);
        next = page.next;
        if next.is_none() || all.len() >= SEARCHED_MAX {
            return Ok(all);
        }
    }
}

async fn applications(service: &Service) -> Result<Vec<Application>, Error> {
    let alive = service.applications_by_age().await?.into_iter().filter(|life| life.deleted_at.is_none());
    Ok(alive.map(|life| life.application).collect())
}

fn ids(channels: &[ChannelDetails]) -> Vec<String> {
    channels.iter().map(|channel| channel.channel_id.to_string()).collect()
}

fn is_ending(id: &str, name: &str) -> bool {
    !name.is_empty() && id.strip_suffix(name).is_some_and(|rest| rest.ends_with('-'))
}

/// The only id; `None` if there is none.
fn only(field: &str, name: &str, mut found: Vec<String>) -> Result<Option<String>, Problem> {
    if found.len() > 1 {
        let rule = format!("{name} is the name of several: {}. Give the id", shown(&found));
        return Err(Problem::invalid(field, rule));
    }
    Ok(found.pop())
}

fn unknown(field: &str, what: &str, name: &str, known: &[String]) -> Problem {
    Problem::invalid(field, format!("no {what} is called {name}. Known are: {}", shown(known)))
}

fn shown(ids: &[String]) -> String {
    let more = if ids.len() > SHOWN_MAX { ", …" } else { "" };
    format!("{}{more}", ids.iter().take(SHOWN_MAX).cloned().collect::<Vec<_>>().join(", "))
}
