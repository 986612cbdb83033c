//! The roles of operator keys, and of the people who work on the operator pages
//! (`docs/spec/platform.md#key`).

/// What an operator key or an operator may do. A later role allows all that an earlier one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperatorRole {
    /// Reads: every `GET`.
    Read,
    /// Reports and changes: every other call, except those of administrators.
    Write,
    /// Operator keys, operator roles and the audit log too.
    Admin,
}

impl OperatorRole {
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
        assert!(OperatorRole::ALL.is_sorted());
        assert_eq!(OperatorRole::NAMES.map(OperatorRole::from_name), OperatorRole::ALL.map(Some));
        assert_eq!(OperatorRole::from_name("root"), None);
    }
}
