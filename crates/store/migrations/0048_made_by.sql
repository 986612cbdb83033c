-- Who made an organization: the person whose organizations are counted. NULL for those of the operator, for those from
-- before, and for those of a person who is gone.
ALTER TABLE organizations ADD COLUMN made_by TEXT REFERENCES channels (channel_id) ON DELETE SET NULL;
CREATE INDEX organizations_by_maker ON organizations (made_by);

-- Who made an invitation, so that the invitations of a person within a day can be counted.
ALTER TABLE organization_invitations ADD COLUMN invited_by TEXT REFERENCES channels (channel_id) ON DELETE SET NULL;
CREATE INDEX organization_invitations_by_inviter ON organization_invitations (invited_by, created_at);
