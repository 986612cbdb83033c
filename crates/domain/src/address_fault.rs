//! The faults that the address of a webhook can have, and their remedies.

/// A fault in the address of a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressFault {
    /// The scheme is not `https`. `http` is only for addresses that the configuration allows besides public
    /// ones.
    Scheme,
    /// The address contains a user name or a password.
    UserInformation,
    /// The address contains a fragment.
    Fragment,
    /// The address contains a character that URLs do not have.
    Characters,
    /// The port is not a number from 1 to 65535.
    Port,
    /// The host is neither a DNS name nor an IP address in its usual spelling.
    Host,
    /// The host is not public, and the configuration does not allow it.
    Zone,
}

impl AddressFault {
    /// The remedy, in Korean.
    pub const fn korean(self) -> &'static str {
        match self {
            Self::Scheme => "https://로 시작하는 주소여야 합니다.",
            Self::UserInformation => "사용자 이름이나 비밀번호(@)를 넣을 수 없습니다.",
            Self::Fragment => "프래그먼트(#)를 넣을 수 없습니다.",
            Self::Characters => {
                "URL에 쓸 수 있는 ASCII 문자로만 이루어져야 하며, 나머지는 퍼센트 인코딩해야 합니다."
            }
            Self::Port => "포트는 1 이상 65535 이하여야 합니다.",
            Self::Host => {
                "호스트는 점이 있는 도메인 이름(국제 도메인은 xn-- 형식), 십진수 네 개로 된 IPv4 주소 또는 대괄호로 묶은 IPv6 주소여야 합니다."
            }
            Self::Zone => {
                "인터넷에 공개된 주소여야 합니다. 루프백, 사설, 링크 로컬 및 예약된 주소는 쓸 수 없습니다."
            }
        }
    }

    /// The remedy, in English.
    pub const fn english(self) -> &'static str {
        match self {
            Self::Scheme => "must begin with https://.",
            Self::UserInformation => "must not hold a user name or password (@).",
            Self::Fragment => "must not hold a fragment (#).",
            Self::Characters => {
                "must be made of the ASCII characters of a URL, everything else percent-encoded."
            }
            Self::Port => "must have a port from 1 to 65535.",
            Self::Host => {
                "must name a host by a domain name with a dot (xn-- for an international one), by an IPv4 address of four decimal numbers, or by an IPv6 address in brackets."
            }
            Self::Zone => {
                "must lead to a public address: loopback, private, link-local and reserved ones are refused."
            }
        }
    }
}
