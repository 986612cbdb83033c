//! Whether the service key is the one of the store, at the start and at the end of a change of the key.

use domain::seal::Opener;
use store::Tx;
use store::queries::store_identity::StoreIdentity;

use crate::platform::seals::{SEALS_AT_ONCE, SealedKind, opener};
use crate::work::Work;
use crate::{Error, Service};

/// What a store says to the service key of this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCheck {
    /// The key opens what the store's key has sealed. Or there is neither a key nor anything sealed.
    Good,
    /// The store had no test of its key yet, and has one now. Of its secrets, as far as they were looked at,
    /// this number opens with no key.
    Adopted {
        /// Secrets that no key opens.
        lost: u64,
    },
    /// The key does not open what the store's key has sealed.
    Wrong,
    /// Secrets of the store are sealed, and no key is given.
    Missing,
}

/// How far a change of the service key is, when no secret was left to be sealed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// The store was never sealed with the other key, which is the next one.
    NotBegun,
    /// Nothing needs the other key, which is the former one.
    Done,
    /// Another node has changed the key to one that is not known here, or to and fro.
    Elsewhere,
}

/// Some secrets of a store, by what opens them.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    own: u64,
    other: u64,
    lost: u64,
}

impl Service {
    /// Compares the service key with the store's. The first start with a key gives the store its test, unless
    /// none of its sealed secrets opens.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn check_service_key(&self) -> Result<KeyCheck, Error> {
        let service = self.clone();
        let (identity, sample) = self
            .read(async move |tx: &mut Tx| {
                let identity = tx.store_identity().await?;
                let is_tested = identity.key_test.is_some();
                let sample = if is_tested { Sample::default() } else { service.sample_seals(tx).await? };
                Ok((identity, sample))
            })
            .await?;
        let Sample { own, other, lost } = sample;
        if let Some(found) = self.tested(&identity) {
            return Ok(found);
        }
        if own + other == 0 && lost > 0 {
            return Ok(if self.key().is_kept() { KeyCheck::Wrong } else { KeyCheck::Missing });
        }
        if !self.key().is_kept() {
            return Ok(KeyCheck::Good);
        }
        // While the key is changed, the test is sealed again after the last secret.
        let by = if other > 0 { Opener::Other } else { Opener::Own };
        let test = self.key().test(&identity.store_id, by);
        let adopted = self
            .write(async move |work: &mut Work<'_>| {
                work.adopt_service_key(&test).await?;
                Ok(work.store_identity().await?)
            })
            .await?;
        // Another node may have been first, with another key.
        Ok(match self.tested(&adopted) {
            Some(KeyCheck::Good) | None => KeyCheck::Adopted { lost },
            Some(refused) => refused,
        })
    }

    /// What the test of a store says; `None` without a test.
    fn tested(&self, identity: &StoreIdentity) -> Option<KeyCheck> {
        let opened = self.key().opens_test(&identity.store_id, identity.key_test.as_deref()?);
        Some(match opened {
            Some(_) => KeyCheck::Good,
            None if self.key().is_kept() => KeyCheck::Wrong,
            None => KeyCheck::Missing,
        })
    }

    /// Tries the first secrets of each kind.
    async fn sample_seals(&self, tx: &mut Tx) -> Result<Sample, Error> {
        let mut sample = Sample::default();
        for kind in SealedKind::ALL {
            for secret in tx.sealed_secrets(kind, "", SEALS_AT_ONCE).await? {
                match opener(self.key(), kind, &secret) {
                    Some(Opener::Own) => sample.own += 1,
                    Some(Opener::Other) => sample.other += 1,
                    None => sample.lost += 1,
                }
            }
        }
        Ok(sample)
    }

    /// Takes the service key of this node as the store's, because the former one is lost. What that one has
    /// sealed cannot be opened any more.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn replace_service_key(&self) -> Result<(), Error> {
        let service = self.clone();
        self.write(async move |work: &mut Work<'_>| {
            let identity = work.store_identity().await?;
            let test = service.key().test(&identity.store_id, Opener::Own);
            match identity.key_test {
                Some(former) => work.change_service_key(&former, &test).await.map(drop)?,
                None => work.adopt_service_key(&test).await?,
            }
            Ok(())
        })
        .await
    }

    /// Says whether the change of the service key is over, after a look at all secrets that sealed none of
    /// them again. From then on a start that has only the former key is refused.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn finish_key_change(&self) -> Result<KeyChange, Error> {
        let identity = self.read(async move |tx: &mut Tx| Ok::<_, Error>(tx.store_identity().await?)).await?;
        let StoreIdentity { store_id, key_test, former_key_test } = identity;
        let opened =
            |test: &Option<String>| test.as_deref().and_then(|test| self.key().opens_test(&store_id, test));
        match opened(&key_test) {
            Some(Opener::Own) if opened(&former_key_test) == Some(Opener::Other) => Ok(KeyChange::Done),
            Some(Opener::Own) => Ok(KeyChange::NotBegun),
            None => Ok(KeyChange::Elsewhere),
            Some(Opener::Other) => {
                let test = self.key().test(&store_id, Opener::Own);
                let former = key_test.unwrap_or_default();
                let changed = self.write(async move |work: &mut Work<'_>| {
                    Ok(work.change_service_key(&former, &test).await?)
                });
                Ok(if changed.await? { KeyChange::Done } else { KeyChange::Elsewhere })
            }
        }
    }
}
