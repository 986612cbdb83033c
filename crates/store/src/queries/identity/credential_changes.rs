//! Changes of credentials, for the caches of the nodes (`docs/adr/0007-credentials-are-cached.md`).
//!
//! A method that changes a credential notes the [`Dependency`] that changes. `Service::write` records the
//! notes at the end of the transaction. Other nodes find the change by reading [`SLOTS`] versions.

use domain::{ChannelId, ClientId, OrganizationId};
use sha2::{Digest, Sha256};

use crate::{StoreError, Tx, params};

/// The number of slots, which dependencies share. With more slots a change drops fewer unchanged answers.
/// Fewer slots are read faster.
pub const SLOTS: usize = 1_024;

/// Transactions lock slots in ascending order, so they never wait for each other in a circle.
const RECORD: &str = "
    INSERT INTO credential_changes (slot, version) VALUES ($1, 1)
    ON CONFLICT (slot) DO UPDATE SET version = credential_changes.version + 1";

const VERSIONS: &str = "SELECT slot, version FROM credential_changes";

/// Something that a cached answer about a credential depends on.
#[derive(Clone, Copy, Debug)]
pub enum Dependency<'a> {
    /// A user's consent to an application, with its tokens.
    Consent(&'a ClientId, &'a ChannelId),
    /// An application, with its scopes, profile and secrets.
    Application(&'a ClientId),
    /// The organization of an application.
    Organization(&'a OrganizationId),
    /// A user's channel, with its name.
    Channel(&'a ChannelId),
}

/// The slot in which the changes of a dependency are counted. It is the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChangeSlot(u16);

impl ChangeSlot {
    /// Below [`SLOTS`].
    pub fn index(self) -> usize {
        self.0.into()
    }
}

impl From<Dependency<'_>> for ChangeSlot {
    fn from(dependency: Dependency<'_>) -> Self {
        let name = match dependency {
            Dependency::Consent(client, channel) => {
                format!("consent {} {}", client.as_str(), channel.as_str())
            }
            Dependency::Application(client) => format!("application {}", client.as_str()),
            Dependency::Organization(organization) => format!("organization {}", organization.as_str()),
            Dependency::Channel(channel) => format!("channel {}", channel.as_str()),
        };
        let [high, low, ..]: [u8; 32] = Sha256::digest(name).into();
        Self(u16::from_be_bytes([high, low]) % SLOTS as u16)
    }
}

/// The slots that a transaction has noted.
#[derive(Default)]
struct ChangedCredentials(Vec<ChangeSlot>);

impl Tx {
    /// Notes that cached answers with this dependency are invalid after this transaction. Every method whose
    /// statement changes or ends a credential calls it. A new credential changes no answer.
    pub(crate) fn credentials_changed(&mut self, dependency: Dependency<'_>) {
        self.notes::<ChangedCredentials>().0.push(dependency.into());
    }

    /// Records the slots that this transaction has noted, and gives them. It is the last statement of a
    /// transaction with notes, so that a slot is locked for a short time.
    pub async fn record_credential_changes(&mut self) -> Result<Vec<ChangeSlot>, StoreError> {
        let mut changed = std::mem::take(&mut self.notes::<ChangedCredentials>().0);
        changed.sort_unstable();
        changed.dedup();
        for slot in &changed {
            self.execute(RECORD, params![i64::from(slot.0)]).await?;
        }
        Ok(changed)
    }

    /// The version of each slot that has changed at least once.
    pub async fn credential_versions(&mut self) -> Result<Vec<(ChangeSlot, i64)>, StoreError> {
        let versions: Vec<(i64, i64)> = self.fetch_all(VERSIONS, params![]).await?;
        let known = |(slot, version): (i64, i64)| {
            let slot = u16::try_from(slot).ok().filter(|slot| usize::from(*slot) < SLOTS)?;
            Some((ChangeSlot(slot), version))
        };
        Ok(versions.into_iter().filter_map(known).collect())
    }
}
