//! Forms whose sign-in ended while they were open: whom a form was made for, and what was typed, until the
//! person is signed in again.

use domain::ChannelId;
use domain::limits::FORM_DRAFT_LIFETIME_MS;
use store::queries::form_drafts::FormDraft as StoredDraft;
use store::{StoreError, Tx};

use crate::work::Work;
use crate::{Error, Service};

/// For whom a form was made, and on which page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormOrigin {
    /// The person.
    pub channel_id: ChannelId,
    /// The path and query of the page.
    pub page: String,
}

/// What was typed into a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormDraft {
    /// The path that the form posts to.
    pub action: String,
    /// The path and query of the page that it is on.
    pub page: String,
    /// Names and values of its fields, without secrets.
    pub fields: Vec<(String, String)>,
}

impl Service {
    /// The seal of a form: only the pages of this service make it, for a person and a page.
    pub fn seal_form(&self, action: &str, origin: &FormOrigin) -> String {
        let FormOrigin { channel_id, page } = origin;
        self.cursors().seal(&form_context(action), &format!("{channel_id} {page}"))
    }

    /// For whom a form with this seal was made.
    pub fn open_form(&self, action: &str, seal: &str) -> Option<FormOrigin> {
        let opened = self.cursors().open("csrf", &form_context(action), seal).ok()?;
        let (channel, page) = opened.split_once(' ')?;
        Some(FormOrigin { channel_id: ChannelId::stored(channel.to_owned()), page: page.to_owned() })
    }

    /// Keeps what a person typed for an hour, in place of what was kept before.
    pub async fn keep_form_draft(&self, channel: &ChannelId, draft: FormDraft) -> Result<(), Error> {
        let channel = channel.clone();
        let FormDraft { action, page, fields } = draft;
        let fields = serde_json::to_string(&fields)
            .map_err(|_| Error::Internal("what was typed into a form could not be written"))?;
        let draft = StoredDraft { action, page, fields };
        let kept = self.write(async move |work: &mut Work<'_>| {
            let expires_at = work.now().plus_ms(FORM_DRAFT_LIFETIME_MS);
            Ok::<_, Error>(work.put_form_draft(&channel, &draft, expires_at).await?)
        });
        match kept.await {
            // The account was deleted meanwhile.
            Err(Error::Store(StoreError::ForeignKey)) => Ok(()),
            kept => kept,
        }
    }

    /// What a person typed into a form of this page, if it was kept.
    pub async fn form_draft(&self, channel: &ChannelId, page: &str) -> Result<Option<FormDraft>, Error> {
        let (channel, now) = (channel.clone(), self.now());
        let draft = self.read(async move |tx: &mut Tx| Ok(tx.form_draft(&channel, now).await?)).await?;
        Ok(draft.filter(|draft| draft.page == page).map(|StoredDraft { action, page, fields }| FormDraft {
            action,
            page,
            fields: serde_json::from_str(&fields).unwrap_or_default(),
        }))
    }
}

fn form_context(action: &str) -> String {
    format!("form {action}")
}
