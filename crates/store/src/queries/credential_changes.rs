//! Which answers about credentials may have changed: for nodes that keep such answers in memory.
//!
//! A statement that changes one notes the [`Ground`] that it stood on; `Service::write` records the notes at the end of
//! the transaction, so that another node learns of them by reading [`SLOTS`] numbers.

use domain::{ChannelId, ClientId, OrganizationId};
use sha2::{Digest, Sha256};

use crate::{StoreError, Tx, params};

/// Grounds share so many slots. More of them forget fewer answers that have not changed; fewer are read faster.
pub const SLOTS: usize = 1_024;

/// The slots in ascending order are the order of their locks, so that two transactions cannot wait for each other.
const RECORD: &str = "
    INSERT INTO credential_changes (slot, version) VALUES ($1, 1)
    ON CONFLICT (slot) DO UPDATE SET version = credential_changes.version + 1";

const VERSIONS: &str = "SELECT slot, version FROM credential_changes";

/// Something that an answer about a credential rests on.
#[derive(Clone, Copy, Debug)]
pub enum Ground<'a> {
    /// What a user lets an application do, and the tokens that stand on it.
    Consent(&'a ClientId, &'a ChannelId),
    /// An application: its scopes, its profile, its secrets.
    Application(&'a ClientId),
    /// The organization of an application.
    Organization(&'a OrganizationId),
    /// The user's channel: its name.
    Channel(&'a ChannelId),
}

/// Where a ground's changes are counted: the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(u16);

impl Slot {
    /// Below [`SLOTS`].
    pub fn index(self) -> usize {
        self.0.into()
    }
}

impl From<Ground<'_>> for Slot {
    fn from(ground: Ground<'_>) -> Self {
        let name = match ground {
            Ground::Consent(client, channel) => format!("consent {} {}", client.as_str(), channel.as_str()),
            Ground::Application(client) => format!("application {}", client.as_str()),
            Ground::Organization(organization) => format!("organization {}", organization.as_str()),
            Ground::Channel(channel) => format!("channel {}", channel.as_str()),
        };
        let [high, low, ..]: [u8; 32] = Sha256::digest(name).into();
        Self(u16::from_be_bytes([high, low]) % SLOTS as u16)
    }
}

impl Tx {
    /// Notes that answers which rest on a ground may not be kept beyond this transaction. Every method whose statement
    /// changes or ends a credential calls it; making a new one changes no answer.
    pub(crate) fn credentials_changed(&mut self, ground: Ground<'_>) {
        self.changed.push(ground.into());
    }

    /// Records what this transaction has noted, and gives it. To be called last, so that nobody who waits for a slot
    /// holds one up that others wait for.
    pub async fn record_credential_changes(&mut self) -> Result<Vec<Slot>, StoreError> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        for slot in &changed {
            self.execute(RECORD, params![i64::from(slot.0)]).await?;
        }
        Ok(changed)
    }

    /// How often each slot has changed; one that never did is left out.
    pub async fn credential_versions(&mut self) -> Result<Vec<(Slot, i64)>, StoreError> {
        let rows = self.query(VERSIONS, params![]).await?;
        let version = |row: &crate::Row| {
            let slot = u16::try_from(row.get::<i64>(0)?).ok().filter(|slot| usize::from(*slot) < SLOTS);
            Ok(slot.map(Slot).zip(Some(row.get(1)?)))
        };
        rows.iter().filter_map(|row| version(row).transpose()).collect()
    }
}
