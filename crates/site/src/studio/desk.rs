//! Who works in a studio: the streamer, or a person to whom the streamer gave a role. Handlers of the studio
//! get both only from these extractors, whose type names the page.
//!
//! The streamer's own studio is at `/studio`, that of a managed channel at `/studio/channels/{channelId}`. A
//! page that the role does not open is answered as one that does not exist.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::{FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use domain::channel::UserRole;
use domain::refusal::Resource;
use domain::{ChannelId, Refusal};
use web::pages::Flash;
use web::{
    Failure, FormFields, FormTarget, Person, PostedBy, Visitor, Web, charge_studio_form, charge_studio_page,
};

use crate::confirmed::OfPerson;
use crate::studio::at::{self, AtPlace};
use crate::studio::frame::StudioPlace;

/// The address of the own studio.
const STUDIO: &str = "/studio";
/// The studios of managed channels, each at its id.
const STUDIOS: &str = "/studio/channels";

/// A studio, and who works in it.
#[derive(Debug)]
pub(crate) struct Desk {
    /// The request and its browser.
    pub visitor: Visitor,
    /// The channel of the studio.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// The role of the person.
    pub role: UserRole,
}

impl Desk {
    /// The desk of a person: `of` is the id of the managed channel, or `None` for the own channel.
    async fn of(person: Person, of: Option<String>) -> Result<Self, Failure> {
        let Person { visitor, channel_id, name, .. } = person;
        let Some(id) = of else {
            return Ok(Self {
                visitor,
                channel_id,
                channel_name: name,
                role: UserRole::StreamingChannelOwner,
            });
        };
        let id = ChannelId::parse("channelId", &id).map_err(|_| Refusal::NotFound(Resource::Channel))?;
        let managed = visitor.web().service().managed_channel(&channel_id, &id).await?;
        Ok(Self { visitor, channel_id: managed.channel_id, channel_name: managed.name, role: managed.role })
    }

    /// Whether it is the studio of the person's own channel.
    pub(crate) fn is_own(&self) -> bool {
        self.role == UserRole::StreamingChannelOwner
    }

    /// The address in this studio that `path` is in the own one.
    pub(crate) fn path(&self, path: &str) -> String {
        match self.is_own() {
            true => path.to_owned(),
            false => format!("{STUDIOS}/{}{}", self.channel_id, path.strip_prefix(STUDIO).unwrap_or(path)),
        }
    }

    /// The address of a page of this studio, if the role opens it.
    pub(crate) fn may_see(&self, place: StudioPlace) -> Option<String> {
        place.is_open_to(self.role).then(|| self.path(place.path()))
    }

    /// A form of this studio.
    pub(crate) fn form(&self, path: &str) -> FormTarget {
        self.visitor.form(self.path(path))
    }

    /// Leads to a page of this studio.
    pub(crate) fn redirect(&self, path: &str, flash: Option<Flash>) -> Response {
        self.visitor.redirect(&self.path(path), flash)
    }

    fn check(self, place: StudioPlace) -> Result<Self, Failure> {
        match place.is_open_to(self.role) {
            true => Ok(self),
            false => Err(Refusal::NotFound(Resource::Path).into()),
        }
    }
}

/// A person at a page of a studio.
pub(crate) struct StudioAt<P> {
    /// The studio and the person.
    pub desk: Desk,
    place: PhantomData<P>,
}

/// A form of a page of a studio.
pub(crate) struct PostedAt<P> {
    /// The studio and who posted the form.
    pub desk: Desk,
    /// Its fields.
    pub fields: FormFields,
    place: PhantomData<P>,
}

/// The id of the channel in the path, if there is one.
async fn channel_in(parts: &mut Parts) -> Result<Option<String>, Response> {
    let not_found = |_| Failure::from(Refusal::NotFound(Resource::Path)).into_response();
    let raw = RawPathParams::from_request_parts(parts, &()).await.map_err(not_found)?;
    Ok(raw.iter().next().map(|(_, id)| id.to_owned()))
}

fn answered(refusal: impl Into<Failure>) -> Response {
    refusal.into().into_response()
}

impl<P: AtPlace> FromRequestParts<Web> for StudioAt<P> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Response> {
        let id = channel_in(parts).await?;
        let person = Person::from_request_parts(parts, web).await?;
        let (request, who) = (person.visitor.request(), &person.channel_id);
        charge_studio_page(web, request, who, P::PLACE.path()).map_err(answered)?;
        let desk = Desk::of(person, id).await.and_then(|desk| desk.check(P::PLACE)).map_err(answered)?;
        Ok(Self { desk, place: PhantomData })
    }
}

impl<P: AtPlace> FromRequest<Web> for PostedAt<P> {
    type Rejection = Response;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let id = channel_in(&mut parts).await?;
        let request = Request::from_parts(parts, body);
        let PostedBy { person, fields } = PostedBy::from_request(request, web).await?;
        let (request, who) = (person.visitor.request(), &person.channel_id);
        charge_studio_form(web, request, who, P::PLACE.path()).map_err(answered)?;
        let desk = Desk::of(person, id).await.and_then(|desk| desk.check(P::PLACE)).map_err(answered)?;
        Ok(Self { desk, fields, place: PhantomData })
    }
}

impl<P> fmt::Debug for StudioAt<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("StudioAt").field(&self.desk).finish()
    }
}

impl<P> fmt::Debug for PostedAt<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostedAt").field(&self.desk).finish()
    }
}

/// A page that only the channel's own streamer opens.
pub(crate) trait OfStreamer: AtPlace {}

impl OfStreamer for at::StreamKey {}

impl OfStreamer for at::Managers {}

impl<P: OfStreamer> OfPerson for PostedAt<P> {
    fn visitor(&self) -> &Visitor {
        &self.desk.visitor
    }

    fn channel(&self) -> &ChannelId {
        &self.desk.channel_id
    }

    fn fields(&self) -> &FormFields {
        &self.fields
    }
}
