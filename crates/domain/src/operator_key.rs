//! The roles of operator keys (`docs/spec/platform.md#key`).

/// What an operator key allows. A later role allows all that an earlier one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyRole {
    /// Reads: every `GET`.
    Read,
    /// Reports and changes: every other call, except those on operator keys.
    Write,
    /// Operator keys too.
    Admin,
}

impl KeyRole {
    /// Every role, from the least to the most.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];
    /// The names of all roles.
    pub const NAMES: [&str; 3] = [Self::Read.name(), Self::Write.name(), Self::Admin.name()];

    /// The name, as in `write`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// The role of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_allows_what_the_one_before_does() {
        assert!(KeyRole::ALL.is_sorted());
        assert_eq!(KeyRole::NAMES.map(KeyRole::from_name), KeyRole::ALL.map(Some));
        assert_eq!(KeyRole::from_name("root"), None);
    }
}
