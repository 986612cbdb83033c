//! The people who may use the operator pages.

use domain::operator_key::OperatorRole;
use domain::{ChannelId, Timestamp};

use crate::queries::columns::{Select, columns, sql};
use crate::{StoreError, Tx, params};

const PUT: &str = "
    INSERT INTO operators (channel_id, role, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (channel_id) DO UPDATE SET role = excluded.role, created_at = excluded.created_at
    WHERE operators.role <> excluded.role";

const DELETE: &str = "DELETE FROM operators WHERE channel_id = $1";

const ROLE: &str = "SELECT role FROM operators WHERE channel_id = $1";

const OPERATORS: &str = sql!(
    "SELECT ",
    StaffMember::COLUMNS,
    " FROM operators o
      JOIN people p ON p.channel_id = o.channel_id
      JOIN channels c ON c.channel_id = o.channel_id
      WHERE o.channel_id > $1 ORDER BY o.channel_id LIMIT $2"
);

/// A person with an operator role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaffMember {
    /// The person's channel.
    pub channel_id: ChannelId,
    /// Its name.
    pub channel_name: String,
    /// What the person signs in with.
    pub login: String,
    /// The role.
    pub role: OperatorRole,
    /// Since when the person has this role.
    pub created_at: Timestamp,
}

columns!(StaffMember {
    channel_id: "o.channel_id",
    channel_name: "c.channel_name",
    login: "p.login",
    role: "o.role",
    created_at: "o.created_at",
});

impl Tx {
    /// Gives a person a role: `false` if the person has it. `StoreError::ForeignKey` for a channel without a
    /// login.
    pub async fn put_operator_role(
        &mut self,
        channel: &ChannelId,
        role: OperatorRole,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.execute(PUT, params![channel, role.name(), now]).await? > 0)
    }

    /// Takes the role of a person: `false` if there is none.
    pub async fn delete_operator_role(&mut self, channel: &ChannelId) -> Result<bool, StoreError> {
        Ok(self.execute(DELETE, params![channel]).await? > 0)
    }

    /// The role of a person.
    pub async fn operator_role(&mut self, channel: &ChannelId) -> Result<Option<OperatorRole>, StoreError> {
        self.fetch_optional(ROLE, params![channel]).await
    }

    /// Up to `size` people with a role after `after`, in the order of their ids.
    pub async fn operators(&mut self, after: &str, size: i64) -> Result<Vec<StaffMember>, StoreError> {
        self.fetch_all(OPERATORS, params![after, size]).await
    }
}
