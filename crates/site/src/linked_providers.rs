//! `/account/upstream/{name}`: links a provider to the account of a signed-in person, and unlinks it.

use axum::Extension;
use service::upstream::UnlinkOutcome;
use upstream::Upstreams;
use web::pages::Flash;
use web::{PageAnswer, PathId, PostedBy};

use crate::account::ACCOUNT;
use crate::confirmed::Confirmed;
use crate::provider_problem::Attempt;
use crate::provider_sign_in::leave;
use crate::providers::find;

/// The form that links a provider.
pub(crate) const LINK: &str = "/account/upstream/{name}/link";
/// The form that unlinks a provider.
pub(crate) const UNLINK: &str = "/account/upstream/{name}/unlink";

/// `POST /account/upstream/{name}/link`: leads to the provider.
pub(crate) async fn link(
    PathId(name): PathId,
    Extension(upstreams): Extension<Upstreams>,
    Confirmed(PostedBy { person, .. }): Confirmed<PostedBy>,
) -> PageAnswer {
    let attempt = Attempt { next: ACCOUNT, links: true };
    leave(&person.visitor, find(&upstreams, &name)?, attempt).await
}

/// `POST /account/upstream/{name}/unlink`.
pub(crate) async fn unlink(
    PathId(name): PathId,
    Extension(upstreams): Extension<Upstreams>,
    Confirmed(PostedBy { person, .. }): Confirmed<PostedBy>,
) -> PageAnswer {
    let usable: Vec<_> = upstreams.iter().map(|provider| provider.settings().name.as_str()).collect();
    let service = person.visitor.web().service();
    let flash = match service
        .unlink_upstream(&person.channel_id, &name, &usable, person.visitor.lang().into())
        .await?
    {
        UnlinkOutcome::Done => Flash::ProviderUnlinked,
        UnlinkOutcome::LastWayIn => Flash::LastWayIn,
    };
    Ok(person.visitor.redirect(ACCOUNT, Some(flash)))
}
