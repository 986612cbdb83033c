//! Texts of pages, in Korean and in English.

/// Declares a struct with the texts of pages: for each its name, then the Korean and the English text.
macro_rules! bilingual {
    ($(#[$meta:meta])* $texts:ident { $($name:ident: $korean:literal, $english:literal;)+ }) => {
        $(#[$meta])*
        pub(super) struct $texts {
            $(pub $name: &'static str,)+
        }

        impl $texts {
            const KOREAN: Self = Self { $($name: $korean,)+ };
            const ENGLISH: Self = Self { $($name: $english,)+ };

            /// The texts in a language.
            pub fn of(language: domain::Language) -> &'static Self {
                language.pick(&Self::KOREAN, &Self::ENGLISH)
            }
        }
    };
}

pub(super) use bilingual;
