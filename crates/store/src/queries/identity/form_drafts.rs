//! What people typed into forms whose sign-in had ended. A person has one: the last.

use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const PUT: &str = "
    INSERT INTO form_drafts (channel_id, action, page, fields, expires_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (channel_id) DO UPDATE SET
        action = excluded.action, page = excluded.page, fields = excluded.fields, expires_at = excluded.expires_at";

const FIND: &str =
    sql!("SELECT ", FormDraft::COLUMNS, " FROM form_drafts WHERE channel_id = $1 AND expires_at > $2");

/// What was typed into a form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormDraft {
    /// The path that the form posts to.
    pub action: String,
    /// The path and query of the page that it is on.
    pub page: String,
    /// A JSON list of names and values.
    pub fields: String,
}

columns!(FormDraft { action: "action", page: "page", fields: "fields" });

impl Tx {
    /// Keeps what a person typed, in place of what was kept before. `StoreError::ForeignKey` if there is no
    /// such channel.
    pub async fn put_form_draft(
        &mut self,
        channel: &ChannelId,
        draft: &FormDraft,
        expires_at: Timestamp,
    ) -> Result<(), StoreError> {
        let FormDraft { action, page, fields } = draft;
        self.execute(PUT, params![channel, action, page, fields, expires_at]).await?;
        Ok(())
    }

    /// What a person typed last.
    pub async fn form_draft(
        &mut self,
        channel: &ChannelId,
        now: Timestamp,
    ) -> Result<Option<FormDraft>, StoreError> {
        self.fetch_optional(FIND, params![channel, now]).await
    }
}
