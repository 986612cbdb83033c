//! How long rows are kept that grow with the use of the service.
//!
//! Rows with an end of their own, such as tokens and session URLs, are not here. Claims are kept as long as
//! their campaign.

use std::fmt;

use crate::Timestamp;
use crate::limits::{
    AUDIT_LOG_KEPT_MS, CHAT_MESSAGES_KEPT_MS, CLAIM_CHANGES_KEPT_MS, DAY_MS, DISCONNECTED_SESSION_VISIBLE_MS,
    DONATIONS_KEPT_MS, RETENTION_DAYS_MAX, USAGE_KEPT_MS, WEBHOOK_DELIVERIES_KEPT_MS,
};

/// A kind of rows that are deleted when they are old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retained {
    /// Chat messages.
    ChatMessages,
    /// Donations.
    Donations,
    /// Sessions that ended, with their subscriptions.
    EndedSessions,
    /// Messages to webhooks, with their attempts and notices.
    WebhookMessages,
    /// Changes of the states of claims.
    ClaimChanges,
    /// The counted requests of applications.
    ApplicationRequests,
    /// Entries of the audit log.
    AuditLog,
}

/// A row of the retention table.
#[derive(Clone, Copy, Debug)]
pub struct RetentionRule {
    /// What is kept.
    pub of: Retained,
    /// Its name in the option.
    pub name: &'static str,
    /// How long it is kept by default, in milliseconds: whole days.
    pub default_ms: i64,
    /// The shortest time that can be chosen, in milliseconds: whole days.
    pub lowest_ms: i64,
    /// Since when the time counts.
    pub counts_from: &'static str,
    /// What needs the rows.
    pub needed_by: &'static str,
}

/// The retention table.
pub const RETENTION_TABLE: [RetentionRule; 7] = [
    RetentionRule {
        of: Retained::ChatMessages,
        name: "chat-messages",
        default_ms: CHAT_MESSAGES_KEPT_MS,
        lowest_ms: DAY_MS,
        counts_from: "the message",
        needed_by: "hiding a message, making it the notice of its chat, the chat page of the studio",
    },
    RetentionRule {
        of: Retained::Donations,
        name: "donations",
        default_ms: DONATIONS_KEPT_MS,
        lowest_ms: DAY_MS,
        counts_from: "the donation",
        needed_by: "your own accounting; no call reads them",
    },
    RetentionRule {
        of: Retained::EndedSessions,
        name: "ended-sessions",
        default_ms: DISCONNECTED_SESSION_VISIBLE_MS,
        lowest_ms: DISCONNECTED_SESSION_VISIBLE_MS,
        counts_from: "the end of the session",
        needed_by: "the session lists, which show ended sessions for 90 days",
    },
    RetentionRule {
        of: Retained::WebhookMessages,
        name: "webhook-messages",
        default_ms: WEBHOOK_DELIVERIES_KEPT_MS,
        lowest_ms: WEBHOOK_DELIVERIES_KEPT_MS,
        counts_from: "the last change of the message's state",
        needed_by: "the lists of messages, and sending one again: both work for 30 days",
    },
    RetentionRule {
        of: Retained::ClaimChanges,
        name: "claim-changes",
        default_ms: CLAIM_CHANGES_KEPT_MS,
        lowest_ms: DAY_MS,
        counts_from: "the change",
        needed_by: "questions about which application fulfilled a claim; the claim itself stays",
    },
    RetentionRule {
        of: Retained::ApplicationRequests,
        name: "application-requests",
        default_ms: USAGE_KEPT_MS,
        lowest_ms: USAGE_KEPT_MS,
        counts_from: "the day of the requests",
        needed_by: "the usage of an application in the developer center, which shows 90 days",
    },
    RetentionRule {
        of: Retained::AuditLog,
        name: "audit-log",
        default_ms: AUDIT_LOG_KEPT_MS,
        lowest_ms: 90 * DAY_MS,
        counts_from: "the entry",
        needed_by: "the audit log",
    },
];

impl Retained {
    /// Its row of the table.
    pub const fn rule(self) -> &'static RetentionRule {
        &RETENTION_TABLE[self as usize]
    }
}

/// How long each kind of rows is kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Retention([i64; RETENTION_TABLE.len()]);

impl Default for Retention {
    fn default() -> Self {
        Self(RETENTION_TABLE.map(|rule| rule.default_ms))
    }
}

impl fmt::Debug for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = |rule: &RetentionRule| format_args!("{} days", self.days(rule.of)).to_string();
        let mut map = f.debug_map();
        for rule in &RETENTION_TABLE {
            map.entry(&format_args!("{}", rule.name), &format_args!("{}", days(rule)));
        }
        map.finish()
    }
}

impl Retention {
    /// Reads `chat-messages=7`, with further names after commas. The number is days, and may end in `d`.
    ///
    /// # Errors
    /// A sentence that names what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut retention = Self::default();
        let mut given = [false; RETENTION_TABLE.len()];
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, days) = part.split_once('=').ok_or_else(|| format!("{part} is not NAME=DAYS"))?;
            let (name, days) = (name.trim(), days.trim());
            let rule = RETENTION_TABLE.iter().find(|rule| rule.name == name).ok_or_else(|| {
                let names: Vec<_> = RETENTION_TABLE.iter().map(|rule| rule.name).collect();
                format!("{name} is not known: the names are {}", names.join(", "))
            })?;
            if std::mem::replace(&mut given[rule.of as usize], true) {
                return Err(format!("{name} is given twice"));
            }
            let digits = days.strip_suffix('d').unwrap_or(days);
            let lowest = rule.lowest_ms / DAY_MS;
            retention.0[rule.of as usize] = digits
                .parse::<i64>()
                .ok()
                .filter(|days| (lowest..=RETENTION_DAYS_MAX).contains(days))
                .map(|days| days * DAY_MS)
                .ok_or_else(|| format!("{name} must be {lowest} to {RETENTION_DAYS_MAX} days"))?;
        }
        Ok(retention)
    }

    /// How long these rows are kept, in milliseconds.
    pub const fn kept_ms(&self, of: Retained) -> i64 {
        self.0[of as usize]
    }

    /// How long these rows are kept, in days.
    pub const fn days(&self, of: Retained) -> i64 {
        self.kept_ms(of) / DAY_MS
    }

    /// Rows of this time or before are too old.
    pub fn oldest(&self, of: Retained, now: Timestamp) -> Timestamp {
        now.plus_ms(-self.kept_ms(of))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_row() {
        for (index, rule) in RETENTION_TABLE.iter().enumerate() {
            assert_eq!(rule.of as usize, index, "{}", rule.name);
            assert_eq!(rule.of.rule().name, rule.name);
            assert!(rule.lowest_ms <= rule.default_ms && rule.default_ms % DAY_MS == 0, "{}", rule.name);
            assert!(rule.lowest_ms > 0 && rule.lowest_ms % DAY_MS == 0, "{}", rule.name);
        }
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        assert_eq!(Retention::parse(""), Ok(Retention::default()));
        let parsed = Retention::parse("chat-messages=1, donations=3650d,").unwrap();
        assert_eq!(parsed.days(Retained::ChatMessages), 1);
        assert_eq!(parsed.days(Retained::Donations), 3_650);
        assert_eq!(parsed.days(Retained::AuditLog), 400);
        let now = Timestamp::from_millis(3 * DAY_MS);
        assert_eq!(parsed.oldest(Retained::ChatMessages, now).as_millis(), 2 * DAY_MS);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, why) in [
            ("chat-messages", "chat-messages is not NAME=DAYS"),
            ("chat-messages=0", "chat-messages must be 1 to 3650 days"),
            ("chat-messages=-1", "chat-messages must be 1 to 3650 days"),
            ("chat-messages=3651", "chat-messages must be 1 to 3650 days"),
            ("chat-messages=", "chat-messages must be 1 to 3650 days"),
            ("chat-messages=1h", "chat-messages must be 1 to 3650 days"),
            ("chat-messages=99999999999999999999", "chat-messages must be 1 to 3650 days"),
            ("ended-sessions=89", "ended-sessions must be 90 to 3650 days"),
            ("audit-log=100,audit-log=100", "audit-log is given twice"),
        ] {
            assert_eq!(Retention::parse(text), Err(why.to_owned()), "{text}");
        }
        assert!(Retention::parse("chats=1").unwrap_err().contains("the names are chat-messages, donations"));
    }

    #[test]
    fn it_is_shown_in_days() {
        let shown = format!("{:?}", Retention::default());
        assert!(shown.starts_with("{chat-messages: 7 days, donations: 400 days"), "{shown}");
    }
}
