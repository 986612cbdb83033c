//! The roles of people over applications and in organizations (`docs/developers.md`).

use crate::application::Application;
use crate::{ChannelId, Invalid, Rule};

/// The role of a person in an organization, and so over its applications. A later role allows all that an
/// earlier one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberRole {
    /// Reads.
    Viewer,
    /// Changes applications and their secrets.
    Developer,
    /// Everything: members, and requests in the name of the organization.
    Admin,
}

impl MemberRole {
    /// Every role, from the least to the most.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Developer, Self::Admin];
    /// The names of all roles.
    pub const NAMES: [&str; 3] = [Self::Viewer.name(), Self::Developer.name(), Self::Admin.name()];

    /// The name, as in `developer`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Developer => "developer",
            Self::Admin => "admin",
        }
    }

    /// The role of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// The role that a caller names.
    ///
    /// # Errors
    /// `Invalid` naming `role`.
    pub fn parse(name: &str) -> Result<Self, Invalid> {
        Self::from_name(name).ok_or(Invalid::new("role", Rule::OneOf(&Self::NAMES)))
    }
}

/// The role of a person over an application. `member` is the person's role in the organization of the
/// application, if it has one. The owner has every right.
pub fn role_over(
    application: &Application,
    member: Option<MemberRole>,
    person: &ChannelId,
) -> Option<MemberRole> {
    if application.owner.as_ref() == Some(person) {
        return Some(MemberRole::Admin);
    }
    member.filter(|_| application.organization.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::application::{Organization, Presentation};
    use crate::{ClientId, OrganizationId, ScopeSet};

    #[test]
    fn each_role_allows_what_the_one_before_does() {
        assert!(MemberRole::ALL.is_sorted());
        assert_eq!(MemberRole::NAMES.map(MemberRole::from_name), MemberRole::ALL.map(Some));
        assert_eq!(MemberRole::parse("owner"), Err(Invalid::new("role", Rule::OneOf(&MemberRole::NAMES))));
    }

    #[test]
    fn the_owner_has_every_right_and_others_that_of_their_organization() {
        let id = |text: &str| ChannelId::stored(text.to_owned());
        let application = |owner: Option<&str>, organization: bool| Application {
            client_id: ClientId::stored("bot".to_owned()),
            name: "bot".to_owned(),
            organization: organization.then(|| Organization {
                organization_id: OrganizationId::stored("games".to_owned()),
                name: "games".to_owned(),
                verified: false,
            }),
            owner: owner.map(id),
            scopes: ScopeSet::EMPTY,
            profile: None,
            quota: crate::quota::QuotaShare::FULL,
            presentation: Presentation::default(),
        };
        let (viewer, admin) = (Some(MemberRole::Viewer), Some(MemberRole::Admin));
        for (owner, organization, member, expected) in [
            (Some("haneul"), false, None, admin),
            (Some("bada"), false, None, None),
            (Some("bada"), false, viewer, None),
            (None, true, viewer, viewer),
            (None, true, admin, admin),
            (None, true, None, None),
            (None, false, None, None),
        ] {
            let role = role_over(&application(owner, organization), member, &id("haneul"));
            assert_eq!(role, expected, "{owner:?} {organization} {member:?}");
        }
    }
}
