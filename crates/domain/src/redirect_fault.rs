//! The faults that a redirect address can have, and their remedies.

use std::borrow::Cow;

use crate::address_fault::AddressFault;
use crate::limits::URL_BYTES_MAX;

/// A fault in a redirect address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedirectFault {
    /// It has too many bytes.
    Long,
    /// The scheme is neither `https` nor, for this machine, `http`.
    Scheme,
    /// The address contains a wildcard.
    Wildcard,
    /// The host is neither a name nor an IPv6 address in brackets.
    Host,
    /// A fault that the address of a webhook can have too.
    Of(AddressFault),
}

impl RedirectFault {
    /// The remedy, in Korean.
    pub fn korean(self) -> Cow<'static, str> {
        match self {
            Self::Long => format!("{URL_BYTES_MAX}바이트 이하여야 합니다.").into(),
            Self::Scheme => {
                "https://로 시작해야 합니다. http://는 localhost, 127.0.0.1, [::1]에만 쓸 수 있습니다.".into()
            }
            Self::Wildcard => "와일드카드(*)를 넣을 수 없습니다.".into(),
            Self::Host => "호스트는 도메인 이름이나 IP 주소여야 합니다.".into(),
            Self::Of(fault) => fault.korean().into(),
        }
    }

    /// The remedy, in English.
    pub fn english(self) -> Cow<'static, str> {
        match self {
            Self::Long => format!("must have at most {URL_BYTES_MAX} bytes.").into(),
            Self::Scheme => {
                "must begin with https://, or with http:// for localhost, 127.0.0.1 and [::1].".into()
            }
            Self::Wildcard => "must not hold a wildcard (*).".into(),
            Self::Host => "must name a host by a domain name or an IP address.".into(),
            Self::Of(fault) => fault.english().into(),
        }
    }
}
