//! The operator keys of the platform API: adding, listing, revoking.

use domain::audit::{Actor, AuditAction};
use domain::limits::NAME_CHARS_MAX;
use domain::operator_key::OperatorRole;
use domain::refusal::Resource;
use domain::secret::OperatorKey;
use domain::{OperatorKeyId, Refusal, invalid};
use serde_json::json;
use store::Tx;
pub use store::queries::operator_keys::StoredOperatorKey;

use crate::identity::application_life::USES_PER_TRANSACTION;
use crate::identity::organizations::ListPage;
use crate::platform::idempotency::{self, IdempotencyKey, StoredAnswer};
use crate::work::Work;
use crate::{Error, Purpose, Service};

/// An added key.
#[derive(Clone)]
struct AddedKey {
    key_id: OperatorKeyId,
    /// Sealed with the service key.
    sealed: String,
}

impl StoredAnswer for AddedKey {
    fn to_text(&self) -> String {
        format!("{} {}", self.key_id, self.sealed)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (key_id, sealed) = text.split_once(' ')?;
        Some(Self { key_id: OperatorKeyId::stored(key_id.to_owned()), sealed: sealed.to_owned() })
    }
}

impl Service {
    /// Adds an operator key. A repeated idempotency key returns the same key: the store keeps the sealed key
    /// as long as the idempotency key.
    ///
    /// # Errors
    /// `Invalid` naming `name`; [`Refusal::NotFound`] when the key of a repeated call was revoked.
    pub async fn add_operator_key(
        &self,
        name: String,
        role: OperatorRole,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<(StoredOperatorKey, OperatorKey), Error> {
        const SUBJECT: &str = "operator key";
        invalid::text("name", &name, 1, NAME_CHARS_MAX)?;
        let key = OperatorKey::generate(self.random(Purpose::OperatorKey));
        let sealed = self.key().seal(SUBJECT, key.expose(), self.random(Purpose::Nonce));
        let new = StoredOperatorKey {
            key_id: OperatorKeyId::generate(self.now(), self.random(Purpose::OperatorKey)),
            name,
            role,
            last_characters: key.last_characters(),
            created_at: self.now(),
            last_used_at: None,
        };
        let hash = key.hash();
        let added = AddedKey { key_id: new.key_id.clone(), sealed };
        let (stored, earlier) = self
            .write(async move |work: &mut Work<'_>| {
                let earlier = idempotency::claim(work, idempotency_key.as_ref(), &added).await?;
                let Some(earlier) = earlier else {
                    work.insert_operator_key(&new, &hash).await?;
                    let details = json!({ "name": new.name, "role": new.role.name() });
                    work.audit_with(AuditAction::KeyAdd, &new.key_id, details).await?;
                    return Ok((new, None));
                };
                let stored = work.operator_key(&earlier.key_id).await?;
                let stored = stored.ok_or(Refusal::NotFound(Resource::OperatorKey))?;
                Ok::<_, Error>((stored, Some(earlier.sealed)))
            })
            .await?;
        let Some(sealed) = earlier else { return Ok((stored, key)) };
        let opened = self.key().open(SUBJECT, &sealed).as_deref().and_then(OperatorKey::presented);
        let key = opened.ok_or(Error::Internal("an operator key was sealed with another service key"))?;
        Ok((stored, key))
    }

    /// The operator keys, by their ids, which begin with their times.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another list.
    pub async fn operator_keys(
        &self,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<StoredOperatorKey>, Error> {
        const CONTEXT: &str = "operator-keys";
        let after = next.map(|cursor| self.cursors().open("next", CONTEXT, cursor)).transpose()?;
        let after = after.unwrap_or_default();
        let items = self.read(async move |tx: &mut Tx| Ok(tx.operator_keys(&after, size + 1).await?)).await?;
        let (items, next) = self.page(CONTEXT, items, size, |item| item.key_id.to_string());
        Ok(ListPage { items, next })
    }

    /// One operator key.
    ///
    /// # Errors
    /// [`Refusal::NotFound`] when it does not exist.
    pub async fn operator_key(&self, id: &OperatorKeyId) -> Result<StoredOperatorKey, Error> {
        let id = id.clone();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.operator_key(&id).await?)).await?;
        Ok(found.ok_or(Refusal::NotFound(Resource::OperatorKey))?)
    }

    /// Revokes an operator key, with effect on the next call on every node. A missing key is no error.
    pub async fn revoke_operator_key(&self, id: &OperatorKeyId) -> Result<(), Error> {
        let id = id.clone();
        self.write(async move |work: &mut Work<'_>| {
            if work.delete_operator_key(&id).await? {
                work.audit(AuditAction::KeyRevoke, &id).await?;
            }
            Ok(())
        })
        .await
    }

    /// The role of a presented operator key and the actor that it stands for, if it is stored.
    pub async fn operator_key_actor(
        &self,
        presented: &OperatorKey,
    ) -> Result<Option<(OperatorRole, Actor)>, Error> {
        let hash = presented.hash();
        let found = self.read(async move |tx: &mut Tx| Ok(tx.operator_key_of(&hash).await?)).await?;
        Ok(found.map(|(key_id, name, role)| {
            self.0.operator_keys_last_used.note(&key_id, self.now());
            (role, Actor::OperatorKey { key_id, name })
        }))
    }

    pub(crate) async fn write_operator_key_uses(&self, every: bool) -> Result<u64, Error> {
        let now = self.now();
        let uses = self.0.operator_keys_last_used.to_write(now, every);
        for chunk in uses.chunks(USES_PER_TRANSACTION) {
            let batch = chunk.to_vec();
            self.write(async move |work: &mut Work<'_>| {
                for (id, at) in &batch {
                    work.note_operator_key_use(id, *at).await?;
                }
                Ok::<_, Error>(())
            })
            .await?;
            self.0.operator_keys_last_used.written(chunk);
        }
        self.0.operator_keys_last_used.drop_idle(now);
        Ok(uses.len().try_into().unwrap_or(u64::MAX))
    }
}
