-- Invitations and offers belong to the account that had the login when they were made, not to who takes the login later. They
-- end with the account. channel_id: NULL where no account had the login: nobody can accept.
ALTER TABLE organization_invitations ADD COLUMN channel_id TEXT REFERENCES people (channel_id) ON DELETE CASCADE;
ALTER TABLE application_offers ADD COLUMN channel_id TEXT REFERENCES people (channel_id) ON DELETE CASCADE;
UPDATE organization_invitations SET channel_id = (
    SELECT p.channel_id FROM people p JOIN channels c ON c.channel_id = p.channel_id
    WHERE p.login = organization_invitations.login AND c.created_at <= organization_invitations.created_at);
UPDATE application_offers SET channel_id = (
    SELECT p.channel_id FROM people p JOIN channels c ON c.channel_id = p.channel_id
    WHERE p.login = application_offers.login AND c.created_at <= application_offers.created_at);
DROP INDEX organization_invitations_of_login;
DROP INDEX application_offers_of_login;
CREATE INDEX organization_invitations_of_person ON organization_invitations (channel_id);
CREATE INDEX application_offers_of_person ON application_offers (channel_id);

-- All tokens and codes of an application end when its token_generation is raised: one of an earlier generation is refused.
ALTER TABLE applications ADD COLUMN token_generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE authorization_codes ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE access_tokens ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE refresh_tokens ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;

-- began_at: when the sign-in ended whose tokens follow one another. Of tokens from before, when they were issued.
ALTER TABLE authorization_codes ADD COLUMN began_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE refresh_tokens ADD COLUMN began_at BIGINT NOT NULL DEFAULT 0;
UPDATE authorization_codes SET began_at = expires_at - 600000;
UPDATE refresh_tokens SET began_at = expires_at - 2592000000;
