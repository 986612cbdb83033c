//! The pages of the studio as types, so that a handler's signature names its page.

use crate::studio::frame::StudioPlace;

/// A page of the studio.
pub(crate) trait AtPlace: Send {
    /// The page.
    const PLACE: StudioPlace;
}

macro_rules! places {
    ($($name:ident)+) => {$(
        #[derive(Debug)]
        pub(crate) enum $name {}
        impl AtPlace for $name {
            const PLACE: StudioPlace = StudioPlace::$name;
        }
    )+};
}

places! { Overview Chat Broadcast ChatSettings Restrictions Managers Followers Subscribers StreamKey Channels }
