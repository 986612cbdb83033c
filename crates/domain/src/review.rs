//! Requests that the operator decides: the verification of an organization, scopes of an application
//! (`docs/developers.md`).

use crate::scope::{Scope, ScopeSet};
use crate::{ClientId, Invalid, OrganizationId, Rule};

/// What a person asks the operator for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReviewSubject {
    /// The verification of an organization.
    Verification(OrganizationId),
    /// The scope of drops for an application.
    Drops(ClientId),
    /// Further scopes for an application.
    Scopes(ClientId, ScopeSet),
}

impl ReviewSubject {
    /// The kind.
    pub const fn kind(&self) -> ReviewKind {
        match self {
            Self::Verification(_) => ReviewKind::Organization,
            Self::Drops(_) => ReviewKind::Drops,
            Self::Scopes(..) => ReviewKind::Scopes,
        }
    }

    /// The organization that it is about.
    pub const fn organization_id(&self) -> Option<&OrganizationId> {
        match self {
            Self::Verification(organization_id) => Some(organization_id),
            Self::Drops(_) | Self::Scopes(..) => None,
        }
    }

    /// The application that it is about.
    pub const fn client_id(&self) -> Option<&ClientId> {
        match self {
            Self::Verification(_) => None,
            Self::Drops(client_id) | Self::Scopes(client_id, _) => Some(client_id),
        }
    }

    /// The scopes that an approval grants.
    pub fn scopes(&self) -> ScopeSet {
        match self {
            Self::Verification(_) => ScopeSet::EMPTY,
            Self::Drops(_) => [Scope::Drops].into_iter().collect(),
            Self::Scopes(_, scopes) => *scopes,
        }
    }
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewKind {
    /// The verification of an organization.
    Organization,
    /// The scope of drops.
    Drops,
    /// Further scopes.
    Scopes,
}

impl ReviewKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Organization, Self::Drops, Self::Scopes];
    /// The names of all kinds.
    pub const NAMES: [&str; 3] = [Self::Organization.name(), Self::Drops.name(), Self::Scopes.name()];

    /// The name, as in `drops`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::Drops => "drops",
            Self::Scopes => "scopes",
        }
    }

    /// The kind of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The state of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewState {
    /// The operator has not decided it.
    Pending,
    /// Approved.
    Approved,
    /// Refused.
    Refused,
    /// Its side took it back.
    Withdrawn,
}

impl ReviewState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Approved, Self::Refused, Self::Withdrawn];
    /// The names of all states.
    pub const NAMES: [&str; 4] =
        [Self::Pending.name(), Self::Approved.name(), Self::Refused.name(), Self::Withdrawn.name()];

    /// The name, as in `pending`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Refused => "refused",
            Self::Withdrawn => "withdrawn",
        }
    }

    /// The state of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// The state that a caller names.
    ///
    /// # Errors
    /// `Invalid` naming `state`.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        Self::from_name(name).ok_or(Invalid::new("state", Rule::OneOf(&Self::NAMES)))
    }
}

/// What the operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request is granted.
    Approve,
    /// It is not.
    Refuse,
}

impl Decision {
    /// The names of all decisions.
    pub const NAMES: [&str; 2] = ["approve", "refuse"];

    /// The decision that a caller names.
    ///
    /// # Errors
    /// `Invalid` naming `decision`.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        match name {
            "approve" => Ok(Self::Approve),
            "refuse" => Ok(Self::Refuse),
            _ => Err(Invalid::new("decision", Rule::OneOf(&Self::NAMES))),
        }
    }

    /// The state of a request after it.
    pub const fn state(self) -> ReviewState {
        match self {
            Self::Approve => ReviewState::Approved,
            Self::Refuse => ReviewState::Refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        assert_eq!(ReviewKind::NAMES.map(ReviewKind::from_name), ReviewKind::ALL.map(Some));
        assert_eq!(ReviewState::NAMES.map(ReviewState::from_name), ReviewState::ALL.map(Some));
        let states = Decision::NAMES.map(|name| Decision::parse(name).map(Decision::state));
        assert_eq!(states, [Ok(ReviewState::Approved), Ok(ReviewState::Refused)]);
        assert!(Decision::parse("APPROVE").is_err() && ReviewState::parse("").is_err());
    }

    #[test]
    fn a_request_is_about_an_organization_or_an_application() {
        let (games, bot) = (OrganizationId::stored("games".into()), ClientId::stored("bot".into()));
        let chat: ScopeSet = [Scope::ChatRead].into_iter().collect();
        for (subject, kind, is_organization, scopes) in [
            (ReviewSubject::Verification(games), ReviewKind::Organization, true, ScopeSet::EMPTY),
            (
                ReviewSubject::Drops(bot.clone()),
                ReviewKind::Drops,
                false,
                [Scope::Drops].into_iter().collect(),
            ),
            (ReviewSubject::Scopes(bot, chat), ReviewKind::Scopes, false, chat),
        ] {
            assert_eq!((subject.kind(), subject.scopes()), (kind, scopes));
            assert_eq!(subject.organization_id().is_some(), is_organization);
            assert_eq!(subject.client_id().is_some(), !is_organization);
        }
    }
}
