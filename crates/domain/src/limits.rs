//! Every limit of the service, with its unit. Limits that callers meet are listed in `docs/spec/limits.md`.
//!
//! "(ours)" marks a number that the documentation of the modelled platform does not have.

use std::time::Duration;

use crate::quota::Quota;

/// One second, in milliseconds.
pub const SECOND_MS: i64 = 1_000;
/// One minute, in milliseconds.
pub const MINUTE_MS: i64 = 60 * SECOND_MS;
/// One hour, in milliseconds.
pub const HOUR_MS: i64 = 60 * MINUTE_MS;
/// One day, in milliseconds.
pub const DAY_MS: i64 = 24 * HOUR_MS;

/// How long an access token lives, in milliseconds: 1 day.
pub const ACCESS_TOKEN_LIFETIME_MS: i64 = DAY_MS;
/// How long a refresh token lives, in milliseconds: 30 days. It works once.
pub const REFRESH_TOKEN_LIFETIME_MS: i64 = 30 * DAY_MS;
/// Users and sessions that are counted before the tokens or secrets of an application are ended (ours).
pub const AFFECTED_COUNTED_MAX: i64 = 1_000;
/// The longest time in days for which an operator may let tokens be refreshed after a sign-in (ours).
pub const TOKEN_DAYS_MAX: i64 = 3_650;
/// How long an authorization code can be exchanged, in milliseconds: 10 minutes
/// (`docs/spec/authorization.md#codes`).
pub const CODE_LIFETIME_MS: i64 = 10 * MINUTE_MS;
/// How long an expired or revoked token is kept after its expiry, in milliseconds (ours): 7 days. For this
/// time a refusal has the reason why the token is invalid.
pub const ENDED_TOKENS_KEPT_MS: i64 = 7 * DAY_MS;
/// A used code or refresh token that is presented again within this many milliseconds is a retry of an honest
/// client, not theft (`docs/spec/authorization.md#tokens`).
pub const REUSE_GRACE_MS: i64 = 10 * SECOND_MS;
/// How long a person stays signed in on the consent pages, in milliseconds: 12 hours.
pub const BROWSER_SESSION_LIFETIME_MS: i64 = DAY_MS / 2;
/// How long what was typed into a form is kept after the sign-in of its browser has ended.
pub const FORM_DRAFT_LIFETIME_MS: i64 = 60 * MINUTE_MS;
/// Bytes of a `User-Agent` header that are kept of a browser that is signed in (ours).
pub const USER_AGENT_BYTES_MAX: usize = 512;

/// How long the link of a password reset works, in milliseconds (ours): 30 minutes. It works once.
pub const PASSWORD_RESET_LIFETIME_MS: i64 = 30 * MINUTE_MS;
/// Valid links of one account at the same time (ours). Further requests send nothing.
pub const PASSWORD_RESETS_MAX: i64 = 3;
/// Accounts of one e-mail address that get a link when the address asks for one (ours).
pub const PASSWORD_RESET_ACCOUNTS_MAX: i64 = 20;
/// Fewest characters of a new password, unless the operator wants more (ours; NIST SP 800-63B).
pub const PASSWORD_CHARS_MIN: usize = 8;
/// Most that an operator may demand as the fewest characters of a password (ours).
pub const PASSWORD_CHARS_MIN_MAX: usize = 64;
/// Bytes of a typed password before its normalization (ours).
pub const PASSWORD_TYPED_BYTES_MAX: usize = 4 * CREDENTIAL_BYTES_MAX;
/// Fewest characters of a login that a person chose (ours).
pub const LOGIN_CHARS_MIN: usize = 3;
/// Most characters of a login that a person chose (ours).
pub const LOGIN_CHARS_MAX: usize = 32;
/// Bytes of an e-mail address (RFC 5321).
pub const EMAIL_BYTES_MAX: usize = 254;
/// A step of one-time codes, in milliseconds: 30 seconds (RFC 6238).
pub const TOTP_STEP_MS: i64 = 30 * SECOND_MS;
/// Steps that the clock of an authenticator app may be early or late.
pub const TOTP_DRIFT_STEPS: i64 = 1;
/// How long a sign-in waits for its code after the password, in milliseconds (ours): 5 minutes.
pub const PENDING_SIGN_IN_LIFETIME_MS: i64 = 5 * MINUTE_MS;
/// How long a sign-in confirms changes of an account without a password, in milliseconds (ours): 10 minutes.
pub const RECENT_SIGN_IN_MS: i64 = 10 * MINUTE_MS;
/// How long a sign-in at a provider may take, in milliseconds (ours): 10 minutes.
pub const UPSTREAM_FLOW_LIFETIME_MS: i64 = 10 * MINUTE_MS;
/// Wrong one-time codes of one account within [`CODE_FAILURES_MS`] (ours). Then codes are not checked.
pub const CODE_FAILURES_MAX: i64 = 5;
/// Links of an account and to an address, and notices of each kind of an account, within [`MAIL_COUNTED_MS`]
/// (ours).
pub const MAILS_MAX: i64 = 10;
/// The same for an address that is not proven, to which only links go (ours).
pub const MAILS_UNPROVEN_MAX: i64 = 3;
/// See [`MAILS_MAX`], in milliseconds (ours): an hour.
pub const MAIL_COUNTED_MS: i64 = HOUR_MS;
/// Lifetime of the link that proves an e-mail address, in milliseconds (ours): a day.
pub const EMAIL_PROOF_LIFETIME_MS: i64 = DAY_MS;
/// See [`CODE_FAILURES_MAX`], in milliseconds (ours): 15 minutes.
pub const CODE_FAILURES_MS: i64 = 15 * MINUTE_MS;
/// Recovery codes of one account (ours).
pub const RECOVERY_CODES: usize = 10;
/// Delays between the attempts of a message to the mail hook, in milliseconds (ours). All attempts are within
/// [`PASSWORD_RESET_LIFETIME_MS`].
pub const MAIL_RETRY_MS: [i64; 6] =
    [2 * SECOND_MS, 10 * SECOND_MS, 30 * SECOND_MS, 2 * MINUTE_MS, 5 * MINUTE_MS, 10 * MINUTE_MS];
/// The lease of a node on a message to the mail hook, in milliseconds (ours): three times the deadline of an
/// attempt.
pub const MAIL_LEASE_MS: i64 = 15 * SECOND_MS;
/// How long an unsent message to the mail hook is kept, in milliseconds (ours): as long as its link works.
pub const MAIL_KEPT_MS: i64 = PASSWORD_RESET_LIFETIME_MS;

/// Connected sessions of one application made with client authentication.
pub const CLIENT_SESSIONS_MAX: i64 = 10;
/// Connected sessions of one user opened with user tokens, over all applications.
pub const USER_SESSIONS_MAX: i64 = 3;
/// Event subscriptions of one session.
pub const SUBSCRIPTIONS_PER_SESSION_MAX: i64 = 30;
/// How long a session URL can be used to connect, in milliseconds (`docs/spec/realtime.md#session-url`).
pub const SESSION_URL_LIFETIME_MS: i64 = 30 * SECOND_MS;
/// How long an unused session URL is kept after its expiry, in milliseconds (ours): 1 hour.
pub const SESSION_URLS_KEPT_MS: i64 = 60 * MINUTE_MS;
/// How long a disconnected session stays in the lists, in milliseconds: 90 days.
pub const DISCONNECTED_SESSION_VISIBLE_MS: i64 = 90 * DAY_MS;

/// A node without a heartbeat for this many milliseconds is declared dead, and its sessions end.
pub const NODE_DEAD_AFTER_MS: i64 = 20 * SECOND_MS;
/// Interval of a node's heartbeat, in milliseconds.
pub const NODE_HEARTBEAT_MS: i64 = 5 * SECOND_MS;

/// Distinct channel ids in one channel query.
pub const CHANNEL_IDS_MAX: usize = 20;
/// Items of one page of the session lists: default.
pub const SESSION_LIST_SIZE_DEFAULT: i64 = 20;
/// Maximum items of one page of the session lists.
pub const SESSION_LIST_SIZE_MAX: i64 = 50;
/// The largest `page` of the page-number lists (`docs/spec/rest.md#lists`).
pub const PAGE_MAX: i64 = i32::MAX as i64;

/// Items of one page of followers and subscribers: default.
pub const FOLLOWER_LIST_SIZE_DEFAULT: i64 = 30;
/// Maximum items of one page of followers and subscribers.
pub const FOLLOWER_LIST_SIZE_MAX: i64 = 50;
/// Managers of one channel, besides its owner (ours; their list has no pages).
pub const MANAGERS_MAX: i64 = 1_000;
/// Items of a category search: default.
pub const CATEGORY_SEARCH_SIZE_DEFAULT: i64 = 20;
/// Maximum items of a category search.
pub const CATEGORY_SEARCH_SIZE_MAX: i64 = 50;
/// Unicode code points of the `query` of a category search (ours).
pub const CATEGORY_QUERY_CHARS_MAX: usize = 100;
/// Items of one page of the live list, default and maximum.
pub const LIVE_LIST_SIZE_MAX: i64 = 20;
/// How long a walk through the live list may take from its first page, in milliseconds: 15 minutes (ours).
/// The order of the first page is kept for this time.
pub const LIVE_WALK_MS: i64 = 15 * MINUTE_MS;
/// How much longer that order is kept, in milliseconds, because the clocks of nodes differ.
pub const LIVE_WALK_GRACE_MS: i64 = 5 * MINUTE_MS;
/// The largest `concurrentUserCount` (ours): clients parse it as a 32-bit integer.
pub const CONCURRENT_USERS_MAX: i64 = i32::MAX as i64;
/// Items of one page of the restriction list, default and maximum.
pub const RESTRICTION_LIST_SIZE_MAX: i64 = 30;
/// Ids of one `claimId` filter.
pub const CLAIM_ID_FILTER_MAX: usize = 100;
/// Items of one page of reward claims: default.
pub const CLAIM_PAGE_SIZE_DEFAULT: i64 = 20;
/// Maximum items of one page of reward claims (`docs/spec/drops.md#query`).
pub const CLAIM_PAGE_SIZE_MAX: i64 = 1_000;
/// Ids of one update of reward claims (`docs/spec/drops.md#update`).
pub const CLAIM_UPDATE_IDS_MAX: usize = 100;
/// Rewards of one drops campaign (ours).
pub const CAMPAIGN_REWARDS_MAX: usize = 100;
/// Channels that a drops campaign may name (ours).
pub const CAMPAIGN_CHANNELS_MAX: usize = 500;
/// Maximum minutes that a reward may require: a year (ours).
pub const REWARD_WATCH_MINUTES_MAX: i64 = 365 * 24 * 60;
/// Maximum minutes of one report of watching: a day (ours).
pub const WATCHING_MINUTES_MAX: i64 = 24 * 60;
/// Viewers of one report of watching (ours).
pub const WATCHING_VIEWERS_MAX: usize = 100;
/// Delays between the attempts of a message to a webhook, in milliseconds (`docs/spec/drops.md#webhook`). No
/// attempt follows the last one.
pub const WEBHOOK_RETRY_MS: [i64; 7] =
    [5 * SECOND_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 2 * HOUR_MS, 5 * HOUR_MS, 10 * HOUR_MS, 10 * HOUR_MS];
/// Maximum delay by a receiver's `Retry-After`, in milliseconds (ours): 1 day.
pub const WEBHOOK_RETRY_AFTER_MAX_MS: i64 = DAY_MS;
/// A webhook whose attempts have all failed for this many milliseconds is disabled: 5 days
/// (`docs/spec/drops.md#webhook`).
pub const WEBHOOK_FAILING_MAX_MS: i64 = 5 * DAY_MS;
/// The lease of a node on a webhook message, in milliseconds (ours): three times the deadline of an attempt.
/// So the clocks of nodes may differ a little, and two nodes never send a message at once.
pub const WEBHOOK_LEASE_MS: i64 = 15 * SECOND_MS;
/// Messages that a listener of a webhook fetches at once, default and maximum (ours).
pub const LISTENER_ATTEMPTS_MAX: i64 = 8;
/// How long a listener of a webhook may wait for a message, in seconds (ours).
pub const LISTENER_WAIT_MAX_S: i64 = 25;
/// Maximum duration of an attempt in a listener's report, in milliseconds (ours).
pub const LISTENER_DURATION_MAX_MS: i64 = MINUTE_MS;
/// How long messages to webhooks are kept after they were delivered or given up, in milliseconds (ours): 30
/// days.
pub const WEBHOOK_DELIVERIES_KEPT_MS: i64 = 30 * DAY_MS;
/// Test messages that a webhook's developers may send within [`WEBHOOK_TESTS_SPAN_MS`] (ours).
pub const WEBHOOK_TESTS_MAX: i64 = 5;
/// The span of [`WEBHOOK_TESTS_MAX`], in milliseconds (ours): 1 minute.
pub const WEBHOOK_TESTS_SPAN_MS: i64 = MINUTE_MS;
/// How long a new secret of a webhook is pending before it signs, and the old one is kept after that, in
/// milliseconds (ours): 1 day.
pub const WEBHOOK_SECRET_OVERLAP_MS: i64 = DAY_MS;
/// Minimum number of printable characters of a webhook's secret from the publisher (ours).
pub const WEBHOOK_SECRET_CHARS_MIN: usize = 32;
/// Maximum number of printable characters of a webhook's secret from the publisher (ours).
pub const WEBHOOK_SECRET_CHARS_MAX: usize = 256;
/// Unicode code points that are kept of a receiver's answer (ours).
pub const WEBHOOK_EXCERPT_CHARS_MAX: usize = 256;
/// Messages to a webhook on one page of their list: default (ours).
pub const DELIVERY_PAGE_SIZE_DEFAULT: i64 = 20;
/// Maximum messages to a webhook on one page of their list (ours).
pub const DELIVERY_PAGE_SIZE_MAX: i64 = 100;
/// How long a temporary restriction lasts, in milliseconds
/// (`docs/spec/restriction.md#temporary-restriction`).
pub const TEMPORARY_RESTRICTION_MS: i64 = MINUTE_MS;
/// A temporary restriction hides the target's messages of the last this many milliseconds
/// (`docs/spec/restriction.md#temporary-restriction`).
pub const TEMPORARY_RESTRICTION_HIDES_MS: i64 = MINUTE_MS;
/// The longest time between two messages of one viewer in slow mode, in milliseconds: the largest
/// `chatSlowModeSec` (`docs/spec/chat.md#settings`).
pub const SLOW_MODE_MAX_MS: i64 = 300 * SECOND_MS;
/// How long a chat message is kept, in milliseconds (ours): 7 days.
pub const CHAT_MESSAGES_KEPT_MS: i64 = 7 * DAY_MS;
/// How long a donation is kept, in milliseconds (ours): 400 days, so that a year can be compared with the one
/// before.
pub const DONATIONS_KEPT_MS: i64 = 400 * DAY_MS;
/// How long a change of a claim's state is kept, in milliseconds (ours): 400 days.
pub const CLAIM_CHANGES_KEPT_MS: i64 = 400 * DAY_MS;
/// The longest time for which rows can be kept, in days (ours): ten years.
pub const RETENTION_DAYS_MAX: i64 = 3_650;
/// How long an entry of the audit log is kept, in milliseconds (ours): 400 days, so that a year can be
/// compared with the one before.
pub const AUDIT_LOG_KEPT_MS: i64 = 400 * DAY_MS;
/// How long the requests of an application are kept by day, in milliseconds (ours): the days that its usage
/// shows.
pub const USAGE_KEPT_MS: i64 = 90 * DAY_MS;
/// An application whose scopes were not used for this many milliseconds is deleted: 90 days.
pub const UNUSED_APPLICATION_MS: i64 = 90 * DAY_MS;
/// How old the recorded last use of an application may be while it is used, in milliseconds (ours). So only
/// one use an hour costs a write.
pub const USE_WRITTEN_EVERY_MS: i64 = 60 * MINUTE_MS;
/// Items of a page of the operator's lists: default (ours).
pub const OPERATOR_LIST_SIZE_DEFAULT: i64 = 20;
/// Most items of a page of the operator's lists (ours).
pub const OPERATOR_LIST_SIZE_MAX: i64 = 100;
/// Number of characters of a client secret that its operator may see again (ours).
pub const SECRET_CHARS_SHOWN: usize = 4;
/// How long a deleted application can be restored, in milliseconds
/// (`docs/spec/authorization.md#unused-applications`).
pub const APPLICATION_RESTORABLE_MS: i64 = 30 * DAY_MS;
/// Days without use at which an application's owner is warned
/// (`docs/spec/authorization.md#unused-applications`).
pub const UNUSED_WARNING_DAYS: [i64; 3] = [60, 80, 89];
/// Unicode code points of a broadcast's title (ours).
pub const LIVE_TITLE_CHARS_MAX: usize = 100;
/// Tags of one broadcast (`docs/spec/lives.md#broadcast-setting`).
pub const TAGS_MAX: usize = 20;
/// Unicode code points of one tag (`docs/spec/lives.md#broadcast-setting`).
pub const TAG_CHARS_MAX: usize = 20;

/// Unicode code points of one chat message, after JSON decoding, untrimmed.
pub const CHAT_MESSAGE_CHARS_MAX: usize = 100;
/// Entries of the `emojis` map of one chat message or donation (ours).
pub const EMOJIS_MAX: usize = 100;
/// Badges of the author of one chat message (ours).
pub const BADGES_MAX: usize = 10;
/// Unicode code points of a donation text (ours).
pub const DONATION_TEXT_CHARS_MAX: usize = 500;
/// Digits of `payAmount`, an amount in won (ours).
pub const PAY_AMOUNT_DIGITS_MAX: usize = 12;

/// Unicode code points of a name (channel, application, organization, tier).
pub const NAME_CHARS_MAX: usize = 100;
/// Bytes of an id that a caller chose.
pub const ID_BYTES_MAX: usize = 64;
/// Maximum length of a URL that a caller registers or a page passes on, in bytes.
pub const URL_BYTES_MAX: usize = 2_048;
/// Maximum length of the address of a page to which a sign-in leads, in bytes. The request of an
/// application fits: a redirect address and a `state` of the maximum length, percent-encoded where that is
/// usual.
pub const NEXT_PAGE_BYTES_MAX: usize = 6_144;
/// Maximum length of the `state` of a sign-in, in bytes. It returns in the query of the redirect, so it stays
/// far below the limit of a header.
pub const STATE_BYTES_MAX: usize = 1_024;
/// Maximum length of a presented token, code, secret, login or password, in bytes. Those of this service have
/// 43 bytes.
pub const CREDENTIAL_BYTES_MAX: usize = 512;
/// Redirect addresses of one application.
pub const REDIRECT_URIS_MAX: usize = 20;
/// Applications of one owner, a person or an organization, that people register themselves (ours).
pub const OWNED_APPLICATIONS_MAX: i64 = 50;
/// Client secrets of one application that its people make (ours). Expired ones do not count, and the operator
/// may add more.
pub const APPLICATION_SECRETS_MAX: i64 = 20;
/// Organizations that one person makes (ours), whether or not the person stays a member.
pub const ORGANIZATIONS_MAX: i64 = 20;
/// Members of one organization (ours).
pub const ORGANIZATION_MEMBERS_MAX: i64 = 100;
/// How long an invitation into an organization can be accepted, in milliseconds (ours): 7 days.
pub const INVITATION_LIFETIME_MS: i64 = 7 * DAY_MS;
/// Invitations that one person makes within a day, into all organizations together (ours).
pub const INVITATIONS_PER_DAY_MAX: i64 = 50;
/// How long an application is offered to another person.
pub const OFFER_LIFETIME_MS: i64 = 7 * DAY_MS;
/// Requests to the operator that are kept of one application or organization (ours).
pub const REVIEW_REQUESTS_KEPT: i64 = 20;
/// Unicode code points of a request to the operator, and of the operator's note (ours).
pub const REVIEW_TEXT_CHARS_MAX: usize = 2_000;
/// Bytes of an application's logo (ours): 32 KiB. In Base64 it fits into a request.
pub const LOGO_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a JSON request body (`docs/spec/rest.md#bodies`).
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// Client mode: requests of one application.
pub const CLIENT_QUOTA: Quota = Quota::per_minute(800);
/// User mode: requests of one application for one user.
pub const USER_QUOTA: Quota = Quota::per_minute(800);
/// Token endpoint: requests of one application.
pub const TOKEN_QUOTA: Quota = Quota::per_minute(60);
/// Failed authentication of one network address, for each kind: wrong client secrets at the token
/// endpoint, wrong passwords, wrong operator keys. Also bad codes and refresh tokens of one application.
pub const FAILURE_QUOTA: Quota = Quota::per_minute(10);
/// Wrong passwords of one account, from addresses without an earlier sign-in. Further tries are delayed.
pub const ACCOUNT_QUOTA: Quota = Quota::per_minute(10);
/// Maximum delay of a sign-in to an account.
pub const ACCOUNT_DELAY_MAX: Duration = Duration::from_secs(8);
/// Sign-ins of one network address to one account while its sign-ins are delayed.
pub const SLOWED_QUOTA: Quota = Quota::per_minute(2);
/// Checks of passwords, right or wrong, of one network address. Also right passwords of one account (ours).
pub const PASSWORD_CHECK_QUOTA: Quota = Quota::per_minute(30);
/// Further checks of one account at an address where it was signed in to before (ours).
pub const KNOWN_PLACE_CHECK_QUOTA: Quota = Quota::per_minute(10);
/// Browsers in which one person is signed in (ours). One more ends the oldest sign-in.
pub const BROWSER_SESSIONS_MAX: i64 = 100;
/// Registrations of one network address: 10 an hour (ours).
pub const REGISTRATION_QUOTA: Quota = Quota::new(10, 3_600);
/// Registrations and requested password resets of an IPv6 /48, as a multiple of those of an address (ours).
pub const IPV6_NETWORK_FACTOR: u32 = 10;
/// Sign-ins of one network address that begin at a provider (ours).
pub const UPSTREAM_SIGN_IN_QUOTA: Quota = Quota::per_minute(60);
/// Requests of a person for one page of the studio (ours). Its script asks for new chat messages every two
/// seconds.
pub const STUDIO_PAGE_QUOTA: Quota = Quota::per_minute(120);
/// Forms of a person on one page of the studio (ours).
pub const STUDIO_FORM_QUOTA: Quota = Quota::per_minute(60);
/// Requests of a person for pages (ours).
pub const PAGE_QUOTA: Quota = Quota::per_minute(600);
/// Forms of a person (ours).
pub const FORM_QUOTA: Quota = Quota::per_minute(240);
/// Requests for pages of a network address where nobody is signed in (ours). Many people may share it.
pub const VISITOR_PAGE_QUOTA: Quota = Quota::per_minute(1_200);
/// Forms of a network address where nobody is signed in (ours).
pub const VISITOR_FORM_QUOTA: Quota = Quota::per_minute(600);
/// Searches of a network address in the documentation (ours).
pub const SEARCH_QUOTA: Quota = Quota::per_minute(240);
/// Requested password resets of one network address: 10 an hour (ours).
pub const PASSWORD_RESET_QUOTA: Quota = Quota::new(10, 3_600);
/// Session URLs of one caller.
pub const SESSION_URL_QUOTA: Quota = Quota::per_minute(30);
/// Chat messages of one user: 20 in 30 seconds.
pub const CHAT_SEND_QUOTA: Quota = Quota::new(20, 30);

/// Advice to receivers: a message to a webhook that was signed longer ago is refused (ours).
pub const WEBHOOK_SIGNATURE_AGE_MS: i64 = 5 * MINUTE_MS;
/// Advice to clients: the range of the random wait before a new connection, in milliseconds (ours). It is
/// twice as long after each failure.
pub const RECONNECT_WAIT_MS: [i64; 2] = [SECOND_MS, 2 * SECOND_MS];
/// Advice to clients: the longest wait before a new connection (ours).
pub const RECONNECT_WAIT_MAX_MS: i64 = MINUTE_MS;
