//! Why a password may not be chosen.

use std::borrow::Cow;

/// A fault of a new password (`docs/accounts.md#passwords`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordFault {
    /// It has fewer characters than this.
    Short {
        /// Fewest.
        min: usize,
    },
    /// It has more bytes than this.
    Long {
        /// Most.
        max: usize,
    },
    /// It repeats one character or a few.
    Repeated,
    /// Its characters follow each other in the alphabet, in the numbers or on the keyboard.
    Sequence,
    /// It is one of the passwords that are tried first, or one of them with something around it.
    Common,
    /// It consists of the login, the name, the address or the name of the service.
    Personal,
}

impl PasswordFault {
    /// A stable name, for a reason.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Short { .. } => "password-short",
            Self::Long { .. } => "password-long",
            Self::Repeated => "password-repeated",
            Self::Sequence => "password-sequence",
            Self::Common => "password-common",
            Self::Personal => "password-personal",
        }
    }

    /// A sentence in Korean.
    pub fn korean(self) -> Cow<'static, str> {
        match self {
            Self::Short { min } => format!("{min}자 이상이어야 합니다.").into(),
            Self::Long { max } => format!("UTF-8로 {max}바이트 이하여야 합니다.").into(),
            Self::Repeated => "같은 문자나 짧은 묶음을 되풀이한 비밀번호는 쓸 수 없습니다.".into(),
            Self::Sequence => "순서대로 이어지는 문자나 자판 배열로 된 비밀번호는 쓸 수 없습니다.".into(),
            Self::Common => "많이 쓰여 쉽게 추측되는 비밀번호입니다.".into(),
            Self::Personal => "아이디, 이름, 이메일이나 서비스 이름으로 된 비밀번호는 쓸 수 없습니다.".into(),
        }
    }

    /// A part of a sentence in English that begins with the field.
    pub fn english(self) -> Cow<'static, str> {
        match self {
            Self::Short { min } => format!("must have at least {min} characters.").into(),
            Self::Long { max } => format!("must have at most {max} bytes in UTF-8.").into(),
            Self::Repeated => "must not repeat one character or a short group of characters.".into(),
            Self::Sequence => {
                "must not be a sequence of the alphabet, of numbers or of neighbouring keys.".into()
            }
            Self::Common => "is common and easy to guess.".into(),
            Self::Personal => {
                "must not be made of the login, the name, the e-mail address or the name of the service."
                    .into()
            }
        }
    }
}
