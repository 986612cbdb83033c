//! The seventeen scopes (`docs/spec/authorization.md#scopes`) and sets of them.

/// A permission of an application for a user, under the name that the service uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Scope {
    /// 유저 정보 조회
    UserRead,
    /// 채널 관리자 조회
    ManagerRead,
    /// 채널 팔로워 조회
    FollowerRead,
    /// 채널 구독자 조회
    SubscriberRead,
    /// 방송 스트림키 조회
    StreamKeyRead,
    /// 방송 설정 조회
    LiveSettingRead,
    /// 방송 설정 변경
    LiveSettingWrite,
    /// 채팅 메시지 조회
    ChatRead,
    /// 채팅 메시지 쓰기
    ChatWrite,
    /// 채팅 공지 쓰기
    NoticeWrite,
    /// 채팅 설정 조회
    ChatSettingRead,
    /// 채팅 설정 변경
    ChatSettingWrite,
    /// 후원 조회
    DonationRead,
    /// 구독 조회
    SubscriptionRead,
    /// 활동제한 쓰기
    RestrictionWrite,
    /// 활동제한 조회
    RestrictionRead,
    /// 드롭스: granted to the applications of verified organizations only.
    Drops,
}

impl Scope {
    /// Every scope, in the order of `docs/spec/authorization.md#scopes`. The `scope` field of a token answer
    /// has this order.
    pub const ALL: [Self; 17] = [
        Self::UserRead,
        Self::ManagerRead,
        Self::FollowerRead,
        Self::SubscriberRead,
        Self::StreamKeyRead,
        Self::LiveSettingRead,
        Self::LiveSettingWrite,
        Self::ChatRead,
        Self::ChatWrite,
        Self::NoticeWrite,
        Self::ChatSettingRead,
        Self::ChatSettingWrite,
        Self::DonationRead,
        Self::SubscriptionRead,
        Self::RestrictionWrite,
        Self::RestrictionRead,
        Self::Drops,
    ];

    /// The service's own name, as in `docs/spec/authorization.md#scopes`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UserRead => "유저 정보 조회",
            Self::ManagerRead => "채널 관리자 조회",
            Self::FollowerRead => "채널 팔로워 조회",
            Self::SubscriberRead => "채널 구독자 조회",
            Self::StreamKeyRead => "방송 스트림키 조회",
            Self::LiveSettingRead => "방송 설정 조회",
            Self::LiveSettingWrite => "방송 설정 변경",
            Self::ChatRead => "채팅 메시지 조회",
            Self::ChatWrite => "채팅 메시지 쓰기",
            Self::NoticeWrite => "채팅 공지 쓰기",
            Self::ChatSettingRead => "채팅 설정 조회",
            Self::ChatSettingWrite => "채팅 설정 변경",
            Self::DonationRead => "후원 조회",
            Self::SubscriptionRead => "구독 조회",
            Self::RestrictionWrite => "활동제한 쓰기",
            Self::RestrictionRead => "활동제한 조회",
            Self::Drops => "드롭스",
        }
    }

    /// The name in ASCII, for headers.
    pub const fn key(self) -> &'static str {
        match self {
            Self::UserRead => "user-read",
            Self::ManagerRead => "manager-read",
            Self::FollowerRead => "follower-read",
            Self::SubscriberRead => "subscriber-read",
            Self::StreamKeyRead => "stream-key-read",
            Self::LiveSettingRead => "live-setting-read",
            Self::LiveSettingWrite => "live-setting-write",
            Self::ChatRead => "chat-read",
            Self::ChatWrite => "chat-write",
            Self::NoticeWrite => "notice-write",
            Self::ChatSettingRead => "chat-setting-read",
            Self::ChatSettingWrite => "chat-setting-write",
            Self::DonationRead => "donation-read",
            Self::SubscriptionRead => "subscription-read",
            Self::RestrictionWrite => "restriction-write",
            Self::RestrictionRead => "restriction-read",
            Self::Drops => "drops",
        }
    }

    /// The scope of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.name() == name)
    }

    /// The scope of that name or key.
    pub fn from_name_or_key(text: &str) -> Option<Self> {
        Self::from_name(text).or_else(|| Self::ALL.into_iter().find(|scope| scope.key() == text))
    }

    const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeSet(u32);

impl ScopeSet {
    /// No scope.
    pub const EMPTY: Self = Self(0);

    /// All scopes that a user can consent to: all except 드롭스, which belongs to the application itself.
    pub fn of_users() -> Self {
        Scope::ALL.into_iter().filter(|scope| *scope != Scope::Drops).collect()
    }

    /// Whether the set contains `scope`.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The intersection.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The scopes of this set that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The members, in the order of [`Scope::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |scope| self.contains(*scope))
    }

    /// The `scope` field of a token answer: names in the order of [`Scope::ALL`], joined by one space
    /// (`docs/spec/authorization.md#tokens`).
    pub fn joined(self) -> String {
        self.iter().map(Scope::name).collect::<Vec<_>>().join(" ")
    }

    /// The form in the store.
    pub const fn to_stored(self) -> i64 {
        self.0 as i64
    }

    /// From the form in the store; unknown bits are dropped.
    pub fn from_stored(bits: i64) -> Self {
        Scope::ALL.into_iter().filter(|scope| bits & i64::from(scope.bit()) != 0).collect()
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Self(scopes.into_iter().fold(0, |bits, scope| bits | scope.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_names_parse_back() {
        for scope in Scope::ALL {
            assert_eq!(Scope::from_name(scope.name()), Some(scope));
            assert_eq!(Scope::from_name_or_key(scope.name()), Some(scope));
            assert_eq!(Scope::from_name_or_key(scope.key()), Some(scope));
        }
        assert_eq!(Scope::from_name("채팅"), None);
    }

    #[test]
    fn sets_keep_the_order_of_the_spec() {
        let set: ScopeSet =
            [Scope::SubscriptionRead, Scope::ChatWrite, Scope::UserRead].into_iter().collect();
        assert_eq!(set.joined(), "유저 정보 조회 채팅 메시지 쓰기 구독 조회");
        assert_eq!(ScopeSet::from_stored(set.to_stored()), set);
        assert_eq!(ScopeSet::from_stored(-1).iter().count(), 17);
        assert_eq!(ScopeSet::of_users().iter().count(), 16);
    }
}
