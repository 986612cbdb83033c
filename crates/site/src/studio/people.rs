//! How a streamer names a person: by the name or the id of the channel. Several of a name are shown to
//! choose from.

use askama::Template;
use domain::{ChannelId, Invalid, Rule};
use service::people_search::{Called, NamedChannel};
use web::pages::{Lang, filters};
use web::{FormFields, PageAnswer, Person, charge_studio_page};

/// The address by which the script asks for people whose name begins with what is typed.
pub(crate) const PEOPLE: &str = "/studio/people";
/// The field of the button that chooses one of several people.
const CHOSEN: &str = "chosen";

/// A person to choose.
#[derive(Debug)]
pub(crate) struct PersonChoice {
    pub id: String,
    /// The name. Untrusted.
    pub name: String,
    pub followers: String,
    pub is_verified: bool,
}

impl PersonChoice {
    fn of(channel: NamedChannel, lang: Lang) -> Self {
        let followers = channel.follower_count;
        Self {
            id: channel.channel_id.to_string(),
            name: channel.name,
            followers: match (lang, followers) {
                (Lang::Ko, _) => format!("팔로워 {followers}명"),
                (Lang::En, 1) => "1 follower".to_owned(),
                (Lang::En, _) => format!("{followers} followers"),
            },
            is_verified: channel.verified_mark,
        }
    }
}

/// Whom a form names.
pub(crate) enum Named {
    /// This channel.
    Channel(ChannelId),
    /// One of these.
    OneOf(Vec<PersonChoice>),
}

/// Whom a form names in this field, or chose among several.
///
/// # Errors
/// `Invalid` naming the field for a text that names nobody.
pub(crate) async fn named(
    service: &service::Service,
    fields: &FormFields,
    field: &'static str,
    lang: Lang,
) -> Result<Named, service::Error> {
    if let Ok(chosen) = ChannelId::parse(field, fields.text(CHOSEN)) {
        return Ok(Named::Channel(chosen));
    }
    let text = fields.text(field).trim();
    match service.channel_called(text).await? {
        Called::One(channel) => Ok(Named::Channel(channel)),
        Called::Several(channels) => {
            Ok(Named::OneOf(channels.into_iter().map(|one| PersonChoice::of(one, lang)).collect()))
        }
        Called::Nobody if text.is_empty() => Err(Invalid::new(field, Rule::Required).into()),
        Called::Nobody => Err(Invalid::new(field, Rule::KnownChannel).into()),
    }
}

#[derive(Debug, Template)]
#[template(path = "site/studio/people.html")]
struct PeoplePage {
    people: Vec<PersonChoice>,
}

/// `GET /studio/people?q=`: people whose name begins with `q`, for the script.
pub(crate) async fn suggest(person: Person) -> PageAnswer {
    let visitor = &person.visitor;
    charge_studio_page(visitor.web(), visitor.request(), &person.channel_id, PEOPLE)?;
    let text = visitor.request().parameter("q").unwrap_or_default();
    let found = visitor.web().service().suggested_channels(&text).await?;
    let people = found.into_iter().map(|channel| PersonChoice::of(channel, visitor.lang())).collect();
    visitor.page(&PeoplePage { people })
}

/// The words of the field.
#[derive(Debug)]
pub(crate) struct PeopleTexts {
    pub field: &'static str,
    pub hint: &'static str,
    /// What is said where several people have the name.
    pub several: &'static str,
    pub choose: &'static str,
}

pub(crate) const fn people_texts(lang: Lang) -> &'static PeopleTexts {
    const KO: PeopleTexts = PeopleTexts {
        field: "채널 이름 또는 채널 ID",
        hint: "채널 ID는 그 사람의 스튜디오와 내 계정 화면에 있습니다.",
        several: "누구인지 아래에서 골라 주세요.",
        choose: "누구인가요?",
    };
    const EN: PeopleTexts = PeopleTexts {
        field: "Channel name or id",
        hint: "People find their channel id in their studio and on the page of their account.",
        several: "Choose below whom you mean.",
        choose: "Whom do you mean?",
    };
    match lang {
        Lang::Ko => &KO,
        Lang::En => &EN,
    }
}
