//! The audit log: who changed what over the platform API, on the operator pages and in the developer center
//! (`docs/audit-log.md`).

use crate::{
    AuditEntryId, CampaignId, CategoryId, ChannelId, ClientId, OperatorKeyId, OrganizationId, SessionKey,
    Timestamp,
};

/// Declares a closed set of words that the log stores.
macro_rules! words {
    ($(#[$doc:meta])* $set:ident { $($(#[$about:meta])* $name:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $set {
            $($(#[$about])* $name,)+
        }

        impl $set {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];
            /// The words of all.
            pub const NAMES: &'static [&'static str] = &[$($word),+];

            /// The word.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }

            /// The one of a word.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.name() == name)
            }
        }
    };
}

words! {
    /// What was done. The part before the dot is the noun, the part after it the verb.
    AuditAction {
        /// An operator key was made.
        KeyAdd = "key.add",
        /// An operator key was revoked.
        KeyRevoke = "key.revoke",
        /// An organization was made or replaced.
        OrganizationPut = "organization.put",
        /// An organization was verified, or lost its verification.
        OrganizationVerify = "organization.verify",
        /// An organization was deleted.
        OrganizationDelete = "organization.delete",
        /// An organization was disabled.
        OrganizationDisable = "organization.disable",
        /// An organization was enabled.
        OrganizationEnable = "organization.enable",
        /// A person got a role in an organization.
        MemberPut = "member.put",
        /// A person is no member of an organization any more.
        MemberDelete = "member.delete",
        /// A person was invited to an organization.
        MemberInvite = "member.invite",
        /// An invitation to an organization was taken back.
        MemberUninvite = "member.uninvite",
        /// A person declined an invitation to an organization.
        MemberDecline = "member.decline",
        /// A person accepted an invitation.
        MemberJoin = "member.join",
        /// The operator was asked for something in the name of a person.
        ReviewAdd = "review.add",
        /// A request to the operator was withdrawn.
        ReviewWithdraw = "review.withdraw",
        /// A request of people was decided.
        ReviewDecide = "review.decide",
        /// An application was made or replaced.
        ApplicationPut = "application.put",
        /// An application was deleted.
        ApplicationDelete = "application.delete",
        /// An application was disabled.
        ApplicationDisable = "application.disable",
        /// An application was enabled.
        ApplicationEnable = "application.enable",
        /// An application that was deleted for want of use was restored.
        ApplicationRestore = "application.restore",
        /// The scopes of an application were chosen.
        ApplicationScopes = "application.scopes",
        /// An application got another owner.
        ApplicationHandOver = "application.hand-over",
        /// An application was offered to another person.
        ApplicationOffer = "application.offer",
        /// The offer of an application was taken back.
        ApplicationOfferTakeBack = "application.offer-take-back",
        /// A person declined the offer of an application.
        ApplicationOfferDecline = "application.offer-decline",
        /// The quotas of an application were turned on or off, or the part of them that it has was changed.
        ApplicationQuota = "application.quota",
        /// A client secret was made.
        SecretAdd = "secret.add",
        /// A client secret got another expiry.
        SecretExpire = "secret.expire",
        /// A client secret was deleted.
        SecretDelete = "secret.delete",
        /// All tokens and codes of an application were ended.
        TokensEnd = "tokens.end",
        /// A webhook was made or changed.
        WebhookPut = "webhook.put",
        /// A webhook was deleted.
        WebhookDelete = "webhook.delete",
        /// A test message was sent to a webhook.
        WebhookTest = "webhook.test",
        /// Messages of a webhook were sent again.
        WebhookResend = "webhook.resend",
        /// A secret of a webhook was made.
        WebhookSecretAdd = "webhook-secret.add",
        /// A secret of a webhook signs from then on.
        WebhookSecretActivate = "webhook-secret.activate",
        /// A secret of a webhook was deleted.
        WebhookSecretDelete = "webhook-secret.delete",
        /// A consent was withdrawn for a person.
        ConsentWithdraw = "consent.withdraw",
        /// A socket session was ended.
        SessionEnd = "session.end",
        /// A channel was made or replaced.
        ChannelPut = "channel.put",
        /// A channel was deleted.
        ChannelDelete = "channel.delete",
        /// The person of a channel was barred.
        ChannelBar = "channel.bar",
        /// The person of a channel was unbarred.
        ChannelUnbar = "channel.unbar",
        /// A person was signed out of every browser.
        BrowserSessionsEnd = "browser-sessions.end",
        /// A link for a new password was issued.
        PasswordResetIssue = "password-reset.issue",
        /// The second step of a sign-in was removed.
        TwoFactorRemove = "two-factor.remove",
        /// A stream key was replaced.
        StreamKeyReissue = "stream-key.reissue",
        /// A person got an operator role.
        OperatorRolePut = "operator-role.put",
        /// A person lost the operator role.
        OperatorRoleDelete = "operator-role.delete",
        /// A campaign was made or replaced.
        CampaignPut = "campaign.put",
        /// A campaign was deleted.
        CampaignDelete = "campaign.delete",
        /// A campaign was disabled.
        CampaignDisable = "campaign.disable",
        /// A campaign was enabled.
        CampaignEnable = "campaign.enable",
        /// A category was made or replaced.
        CategoryPut = "category.put",
    }
}

words! {
    /// What kind of thing was changed.
    SubjectKind {
        /// An application.
        Application = "application",
        /// A campaign of drops.
        Campaign = "campaign",
        /// A category of lives.
        Category = "category",
        /// A channel, which is also its person.
        Channel = "channel",
        /// An operator key.
        OperatorKey = "operator-key",
        /// An organization.
        Organization = "organization",
        /// A socket session.
        Session = "session",
    }
}

words! {
    /// What kind of actor changed something.
    ActorKind {
        /// An operator key that was made over the platform API or on the operator pages.
        OperatorKey = "operator-key",
        /// The operator key of the configuration.
        ConfiguredKey = "configured-key",
        /// A person who is signed in.
        Person = "person",
        /// A command of the sandbox.
        Command = "command",
    }
}

/// Who changes something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A stored operator key.
    OperatorKey {
        /// Its id.
        key_id: OperatorKeyId,
        /// Its name, which the log keeps: a revoked key has none.
        name: String,
    },
    /// The operator key of the configuration.
    ConfiguredKey,
    /// A person, whose name is not kept.
    Person(ChannelId),
    /// A command.
    Command(&'static str),
}

impl Actor {
    /// The id of the configured key in the log.
    pub const CONFIGURED: &'static str = "configured";

    /// Its kind.
    pub const fn kind(&self) -> ActorKind {
        match self {
            Self::OperatorKey { .. } => ActorKind::OperatorKey,
            Self::ConfiguredKey => ActorKind::ConfiguredKey,
            Self::Person(_) => ActorKind::Person,
            Self::Command(_) => ActorKind::Command,
        }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Self::OperatorKey { key_id, .. } => key_id.as_str(),
            Self::ConfiguredKey => Self::CONFIGURED,
            Self::Person(channel_id) => channel_id.as_str(),
            Self::Command(name) => name,
        }
    }

    /// Its name, as far as the log keeps it.
    pub fn name(&self) -> &str {
        match self {
            Self::OperatorKey { name, .. } => name,
            Self::ConfiguredKey | Self::Person(_) | Self::Command(_) => "",
        }
    }
}

/// What is changed: its kind and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// Its kind.
    pub kind: SubjectKind,
    /// Its id.
    pub id: &'a str,
}

macro_rules! subjects {
    ($($id:ident = $kind:ident),+ $(,)?) => {$(
        impl<'a> From<&'a $id> for Subject<'a> {
            fn from(id: &'a $id) -> Self {
                Self { kind: SubjectKind::$kind, id: id.as_str() }
            }
        }
    )+};
}
subjects!(
    CampaignId = Campaign,
    CategoryId = Category,
    ChannelId = Channel,
    ClientId = Application,
    OperatorKeyId = OperatorKey,
    OrganizationId = Organization,
    SessionKey = Session,
);

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// Its id, which begins with its time.
    pub entry_id: AuditEntryId,
    /// When the change was made.
    pub created_at: Timestamp,
    /// The kind of who made it.
    pub actor_kind: ActorKind,
    /// The id of who made it.
    pub actor_id: String,
    /// The name of who made it; empty for none. That of a person is the name of today.
    pub actor_name: String,
    /// What was done.
    pub action: AuditAction,
    /// What kind of thing was changed.
    pub subject_kind: SubjectKind,
    /// The id of what was changed.
    pub subject_id: String,
    /// The name of today of an application, an organization or a person; empty for none.
    pub subject_name: String,
    /// More about the change: the text of a JSON object without secrets and without names of people.
    pub details: String,
    /// The id of the request.
    pub request_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_stands_for_one_thing() {
        for action in AuditAction::ALL {
            assert_eq!(AuditAction::from_name(action.name()), Some(*action));
            assert!(action.name().split_once('.').is_some(), "{}", action.name());
        }
        assert_eq!(AuditAction::from_name("application"), None);
        for kind in SubjectKind::ALL {
            assert_eq!(SubjectKind::from_name(kind.name()), Some(*kind));
        }
        for kind in ActorKind::ALL {
            assert_eq!(ActorKind::from_name(kind.name()), Some(*kind));
        }
    }

    #[test]
    fn a_person_is_kept_by_the_id_alone() {
        let person = Actor::Person(ChannelId::stored("haneul".into()));
        assert_eq!((person.kind().name(), person.id(), person.name()), ("person", "haneul", ""));
        let key = Actor::OperatorKey { key_id: OperatorKeyId::stored("k1".into()), name: "support".into() };
        assert_eq!((key.kind().name(), key.id(), key.name()), ("operator-key", "k1", "support"));
    }
}
