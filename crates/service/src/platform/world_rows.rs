//! What a world file has beyond the calls of the APIs: rows with their own times and numbers. Only a sandbox
//! reads and writes them. Nothing is published.

use domain::channel::UserRole;
use domain::{CampaignId, ChannelId, ClaimId, ClientId, MessageId, Timestamp};
use store::Tx;
use store::queries::restrictions::RestrictedPlace;
pub use store::queries::world_rows::MessageRow;

use crate::channel::relations;
use crate::webhook::deliveries::DeliveryDetails;
use crate::webhook::webhooks::webhook_of;
use crate::work::Work;
use crate::{Error, Service};

/// Number of rows that one statement reads, and one transaction writes.
pub const ROWS_AT_ONCE: i64 = 1_000;

/// A restriction of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestrictionRow {
    /// The restricted channel.
    pub target: ChannelId,
    /// Whether it lasts until it is released, or a minute.
    pub span: RestrictionSpan,
}

/// How long a restriction lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestrictionSpan {
    /// From this time on, until it is released.
    Since(Timestamp),
    /// Until this time.
    Until(Timestamp),
}

impl Service {
    /// Records that the address of a person is proven, without a link.
    pub async fn write_proven_email(&self, channel: &ChannelId, email: &str) -> Result<(), Error> {
        let (channel, email) = (channel.clone(), email.to_owned());
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            work.verify_email(&channel, &email, now).await?;
            Ok::<_, Error>(())
        })
        .await
    }

    /// Up to [`ROWS_AT_ONCE`] chat messages of all chats in the order of their times, after an id.
    pub async fn message_rows(&self, after: Option<&MessageId>) -> Result<Vec<MessageRow>, Error> {
        let after = after.cloned().unwrap_or_else(|| MessageId::stored(String::new()));
        self.read(async move |tx: &mut Tx| Ok(tx.message_rows(&after, ROWS_AT_ONCE).await?)).await
    }

    /// Writes chat messages, without the rules of their chats. One that exists stays as it is.
    pub async fn write_message_rows(&self, messages: Vec<MessageRow>) -> Result<(), Error> {
        for rows in messages.chunks(ROWS_AT_ONCE as usize) {
            let rows = rows.to_vec();
            self.write(async move |work: &mut Work<'_>| {
                Ok::<_, Error>(work.insert_message_rows(&rows).await?)
            })
            .await?;
        }
        Ok(())
    }

    /// The restrictions of a channel: the lasting ones, the newest first, then the temporary ones that run.
    pub async fn restriction_rows(&self, channel: &ChannelId) -> Result<Vec<RestrictionRow>, Error> {
        let mut rows = Vec::new();
        let mut place = RestrictedPlace::start();
        loop {
            let (id, behind) = (channel.clone(), place.clone());
            let found = self
                .read(async move |tx: &mut Tx| {
                    Ok::<_, Error>(tx.restricted_channels(&id, &behind, ROWS_AT_ONCE).await?)
                })
                .await?;
            let Some(last) = found.last() else { break };
            place = RestrictedPlace { created_at: last.created_at, channel_id: last.channel_id.clone() };
            rows.extend(found.into_iter().map(|row| RestrictionRow {
                target: row.channel_id,
                span: RestrictionSpan::Since(row.created_at),
            }));
        }
        let mut after = ChannelId::stored(String::new());
        loop {
            let (id, behind, now) = (channel.clone(), after.clone(), self.now());
            let found = self
                .read(async move |tx: &mut Tx| {
                    Ok::<_, Error>(tx.temporary_restrictions(&id, &behind, now, ROWS_AT_ONCE).await?)
                })
                .await?;
            let Some((last, _)) = found.last() else { return Ok(rows) };
            after = last.clone();
            rows.extend(
                found.into_iter().map(|(target, ends_at)| RestrictionRow {
                    target,
                    span: RestrictionSpan::Until(ends_at),
                }),
            );
        }
    }

    /// Writes a restriction, without hiding messages. One that exists stays as it is.
    pub async fn write_restriction_row(&self, channel: &ChannelId, row: RestrictionRow) -> Result<(), Error> {
        let channel = channel.clone();
        self.write(async move |work: &mut Work<'_>| {
            let now = work.now();
            let RestrictionRow { target, span } = row;
            match span {
                RestrictionSpan::Since(at) => work.restrict(&channel, &target, at).await?,
                RestrictionSpan::Until(at) => work.restrict_temporarily(&channel, &target, at, now).await?,
            };
            Ok::<_, Error>(())
        })
        .await
    }

    /// Gives a manager a role since a time.
    ///
    /// # Errors
    /// As [`put_manager`](Self::put_manager).
    pub async fn put_manager_since(
        &self,
        channel: ChannelId,
        manager: ChannelId,
        role: UserRole,
        since: Timestamp,
    ) -> Result<(), Error> {
        self.write(async move |work: &mut Work<'_>| {
            relations::put_manager_since(work, &channel, &manager, role, since).await
        })
        .await
    }

    /// Sets when a claim was made, and when it last changed.
    pub async fn set_claim_times(
        &self,
        claim: &ClaimId,
        claimed_at: Timestamp,
        updated_at: Timestamp,
    ) -> Result<(), Error> {
        let claim = claim.clone();
        self.write(async move |work: &mut Work<'_>| {
            Ok::<_, Error>(work.set_claim_times(&claim, claimed_at, updated_at).await?)
        })
        .await
    }

    /// Up to [`ROWS_AT_ONCE`] viewers with their minutes for a campaign, after an id.
    pub async fn watched_rows(
        &self,
        campaign: &CampaignId,
        after: Option<&ChannelId>,
    ) -> Result<Vec<(ChannelId, i64)>, Error> {
        let after = after.cloned().unwrap_or_else(|| ChannelId::stored(String::new()));
        let campaign = campaign.clone();
        self.read(async move |tx: &mut Tx| Ok(tx.watched_rows(&campaign, &after, ROWS_AT_ONCE).await?)).await
    }

    /// Sets the minutes of a viewer for a campaign.
    pub async fn write_watched_row(
        &self,
        campaign: &CampaignId,
        viewer: &ChannelId,
        minutes: i64,
    ) -> Result<(), Error> {
        let (campaign, viewer) = (campaign.clone(), viewer.clone());
        self.write(async move |work: &mut Work<'_>| {
            Ok::<_, Error>(work.put_watched_row(&campaign, &viewer, minutes).await?)
        })
        .await
    }

    /// Writes a message to the webhook of an application, with its attempts. It is not in flight. One that
    /// exists stays as it is.
    ///
    /// # Errors
    /// [`NotFound`](domain::Refusal::NotFound) when there is no webhook.
    pub async fn write_delivery_row(&self, client_id: &ClientId, row: DeliveryDetails) -> Result<(), Error> {
        let client_id = client_id.clone();
        self.write(async move |work: &mut Work<'_>| {
            let webhook_id = webhook_of(work, &client_id).await?.webhook_id;
            let DeliveryDetails { delivery, attempts } = &row;
            if work.insert_delivery_row(&webhook_id, delivery).await? {
                for attempt in attempts {
                    work.insert_attempt(&webhook_id, &delivery.message_id, attempt).await?;
                }
                work.wake_senders();
            }
            Ok::<_, Error>(())
        })
        .await
    }
}
