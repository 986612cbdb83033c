//! What operators search by name: people, applications and organizations. One text is looked for in ids, in
//! the logins of people, and in names.

use domain::{ChannelId, ClientId, OrganizationId};
use store::Tx;
use store::queries::name_search::{NameAndId, NamedKind};
use store::queries::organizations::OrganizationDetails;

use crate::channel::channel_admin::ChannelPage;
use crate::identity::application_life::irrecoverable_since;
use crate::identity::application_switch::ApplicationPage;
use crate::identity::organizations::ListPage;
use crate::{Error, Service};

/// Things that are shown before others because their id or login begins with the text.
const BY_ID_MAX: i64 = 20;
/// From this length on the beginning of an id is enough. Shorter texts are the beginnings of many.
const ID_PREFIX_BYTES_MIN: usize = 4;

/// Where a search goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
enum NamePlace {
    /// Among the names that begin with the text, behind this one.
    Beginning(Option<NameAndId>),
    /// Among all names, behind this one.
    Containing(NameAndId),
}

impl NamePlace {
    /// The position in a cursor: a letter, the id, the name.
    fn position(&self) -> String {
        match self {
            Self::Beginning(None) => "b".to_owned(),
            Self::Beginning(Some((name, id))) => format!("b {id} {name}"),
            Self::Containing((name, id)) => format!("c {id} {name}"),
        }
    }

    fn read(position: &str) -> Self {
        let mut parts = position.splitn(3, ' ');
        let (letter, id, name) = (parts.next(), parts.next(), parts.next());
        match (letter, id.zip(name)) {
            (Some("c"), Some((id, name))) => Self::Containing((name.to_owned(), id.to_owned())),
            (_, place) => Self::Beginning(place.map(|(id, name)| (name.to_owned(), id.to_owned()))),
        }
    }
}

/// What one page of a search found, and where it goes on.
struct FoundNames {
    ids: Vec<String>,
    next: Option<NamePlace>,
}

impl Service {
    /// The people whose id, login or channel name a text is found in.
    ///
    /// # Errors
    /// `Invalid` naming `next` for a cursor of another search.
    pub async fn search_people(
        &self,
        text: &str,
        size: i64,
        next: Option<&str>,
    ) -> Result<ChannelPage, Error> {
        let (ids, next) = self.find_names(NamedKind::Channels, text, size, next).await?;
        let channels = self.read(async move |tx: &mut Tx| {
            let mut channels = Vec::new();
            for id in ids {
                channels.extend(tx.channel_details(&ChannelId::stored(id)).await?);
            }
            Ok(channels)
        });
        Ok(ChannelPage { channels: channels.await?, next })
    }

    /// The applications whose id or name a text is found in.
    ///
    /// # Errors
    /// As [`search_people`](Self::search_people).
    pub async fn applications_called(
        &self,
        text: &str,
        size: i64,
        next: Option<&str>,
    ) -> Result<ApplicationPage, Error> {
        let (ids, next) = self.find_names(NamedKind::Applications, text, size, next).await?;
        let since = irrecoverable_since(self.now());
        let applications = self.read(async move |tx: &mut Tx| {
            let mut applications = Vec::new();
            for id in ids {
                applications.extend(tx.application_life(&ClientId::stored(id), since).await?);
            }
            Ok(applications)
        });
        Ok(ApplicationPage { applications: applications.await?, next })
    }

    /// The organizations whose id or name a text is found in.
    ///
    /// # Errors
    /// As [`search_people`](Self::search_people).
    pub async fn organizations_called(
        &self,
        text: &str,
        size: i64,
        next: Option<&str>,
    ) -> Result<ListPage<OrganizationDetails>, Error> {
        let (ids, next) = self.find_names(NamedKind::Organizations, text, size, next).await?;
        let items = self.read(async move |tx: &mut Tx| {
            let mut items = Vec::new();
            for id in ids {
                items.extend(tx.organization_details(&OrganizationId::stored(id)).await?);
            }
            Ok(items)
        });
        Ok(ListPage { items: items.await?, next })
    }

    /// The ids of one page, and the cursor of the next one.
    async fn find_names(
        &self,
        kind: NamedKind,
        text: &str,
        size: i64,
        next: Option<&str>,
    ) -> Result<(Vec<String>, Option<String>), Error> {
        let context = serde_json::json!(["name-search", format!("{kind:?}"), text]).to_string();
        let position = next.map(|cursor| self.cursors().open("next", &context, cursor)).transpose()?;
        let place = position.map(|position| NamePlace::read(&position));
        let text = text.to_owned();
        let found = self.read(async move |tx: &mut Tx| find(tx, kind, &text, place, size).await).await?;
        let next = found.next.map(|place| self.cursors().seal(&context, &place.position()));
        Ok((found.ids, next))
    }
}

/// One page: on the first one also what the text is the id or login of, then the names that begin with it,
/// then those that contain it.
async fn find(
    tx: &mut Tx,
    kind: NamedKind,
    text: &str,
    place: Option<NamePlace>,
    size: i64,
) -> Result<FoundNames, Error> {
    let mut found = Vec::new();
    if place.is_none() {
        let is_prefix = text.len() >= ID_PREFIX_BYTES_MIN;
        found = tx.names_of_ids(kind, text, is_prefix, BY_ID_MAX).await?;
        if kind == NamedKind::Channels {
            found.extend(tx.names_of_logins(&text.to_lowercase(), BY_ID_MAX).await?);
        }
    }
    let mut behind = (String::new(), String::new());
    match place.unwrap_or(NamePlace::Beginning(None)) {
        NamePlace::Containing(place) => behind = place,
        NamePlace::Beginning(place) => {
            let mut names = tx.names_beginning(kind, text, place.as_ref(), size + 1).await?;
            if names.len() as i64 > size {
                names.truncate(usize::try_from(size).unwrap_or(usize::MAX));
                let next = Some(NamePlace::Beginning(names.last().cloned()));
                found.extend(names);
                return Ok(FoundNames { ids: ids_of(found), next });
            }
            found.extend(names);
        }
    }
    let (mut names, end) = tx.names_containing(kind, text, &behind, size + 1).await?;
    let has_more = names.len() as i64 > size;
    names.truncate(usize::try_from(size).unwrap_or(usize::MAX));
    let next = if has_more { names.last().cloned() } else { end };
    found.extend(names);
    Ok(FoundNames { ids: ids_of(found), next: next.map(NamePlace::Containing) })
}

/// The ids, each once, in their order.
fn ids_of(names: Vec<NameAndId>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.into_iter().map(|(_, id)| id).filter(|id| seen.insert(id.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_back_from_its_position() {
        let name = ("하늘 봇 x".to_owned(), "id-1".to_owned());
        for place in [
            NamePlace::Beginning(None),
            NamePlace::Beginning(Some(name.clone())),
            NamePlace::Containing(name),
        ] {
            assert_eq!(NamePlace::read(&place.position()), place);
        }
    }
}
