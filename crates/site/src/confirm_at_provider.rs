//! `/account/confirm/{name}`: a person without a password proves at a provider to own the account.

use axum::Extension;
use service::upstream::PendingForm;
use upstream::Upstreams;
use web::pages::local_page;
use web::{PageAnswer, PathId, PostedBy};

use crate::account::ACCOUNT;
use crate::confirmed::{CODE, ConfirmPage};
use crate::forms::at_field;
use crate::provider_problem::Attempt;
use crate::provider_sign_in::leave_with;
use crate::providers::find;

/// Where the waiting form is posted.
const ACTION: &str = "confirmAction";
/// Begins the names of its fields.
const KEPT: &str = "kept.";

/// `POST /account/confirm/{name}`: leads to the provider, and takes the form along.
pub(crate) async fn at_provider(
    PathId(name): PathId,
    Extension(upstreams): Extension<Upstreams>,
    PostedBy { person, fields }: PostedBy,
) -> PageAnswer {
    let (visitor, channel) = (&person.visitor, &person.channel_id);
    let provider = find(&upstreams, &name)?;
    let action = local_page(fields.text(ACTION)).unwrap_or(ACCOUNT).to_owned();
    let kept = fields.pairs().filter_map(|(name, value)| Some((name.strip_prefix(KEPT)?, value)));
    let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let pending = PendingForm { action, fields: kept };
    let checked = visitor.web().service().check_second_step(channel, fields.text(CODE));
    if let Err(error) = checked.await {
        let errors = at_field(error, visitor.lang())?;
        let (action, kept) = (&pending.action, &pending.fields);
        let mut page = ConfirmPage::new(visitor, channel, action, kept, Some(&upstreams)).await?;
        page.errors = errors;
        return visitor.form_again(&page);
    }
    leave_with(visitor, provider, Attempt::to(ACCOUNT), Some(pending)).await
}
