-- Drops: campaigns, rewards, claims.

-- What a claim copies of its campaign is one key here, so that the database keeps the copies the same.
CREATE TABLE drops_campaigns (
    campaign_id     TEXT PRIMARY KEY,
    campaign_name   TEXT NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (organization_id),
    category_id     TEXT NOT NULL REFERENCES categories (category_id),
    UNIQUE (campaign_id, organization_id, category_id)
);

-- A reward that was taken out of its campaign stays for the claims that it has, and takes no more of them.
CREATE TABLE drops_rewards (
    campaign_id TEXT NOT NULL REFERENCES drops_campaigns (campaign_id),
    reward_id   TEXT NOT NULL,
    reward_name TEXT NOT NULL,
    claimable   BOOLEAN NOT NULL,
    PRIMARY KEY (campaign_id, reward_id)
);

-- The campaign's organization and category stand here too, because lists begin at them.
CREATE TABLE reward_claims (
    claim_id          TEXT PRIMARY KEY,
    organization_id   TEXT NOT NULL,
    campaign_id       TEXT NOT NULL,
    reward_id         TEXT NOT NULL,
    category_id       TEXT NOT NULL,
    channel_id        TEXT NOT NULL REFERENCES channels (channel_id),
    fulfillment_state TEXT NOT NULL,
    claimed_at        BIGINT NOT NULL,
    updated_at        BIGINT NOT NULL,
    FOREIGN KEY (campaign_id, organization_id, category_id)
        REFERENCES drops_campaigns (campaign_id, organization_id, category_id) ON UPDATE CASCADE,
    FOREIGN KEY (campaign_id, reward_id) REFERENCES drops_rewards (campaign_id, reward_id)
);
CREATE UNIQUE INDEX reward_claims_once ON reward_claims (campaign_id, reward_id, channel_id);

-- One for each way into the list of an organization's claims, newest first: a page costs the same at any depth.
CREATE INDEX reward_claims_list ON reward_claims (organization_id, claimed_at, claim_id);
CREATE INDEX reward_claims_in_state
    ON reward_claims (organization_id, fulfillment_state, claimed_at, claim_id);
CREATE INDEX reward_claims_of_campaign ON reward_claims (organization_id, campaign_id, claimed_at, claim_id);
CREATE INDEX reward_claims_of_campaign_in_state
    ON reward_claims (organization_id, campaign_id, fulfillment_state, claimed_at, claim_id);
CREATE INDEX reward_claims_of_category ON reward_claims (organization_id, category_id, claimed_at, claim_id);
CREATE INDEX reward_claims_of_category_in_state
    ON reward_claims (organization_id, category_id, fulfillment_state, claimed_at, claim_id);
CREATE INDEX reward_claims_of_channel ON reward_claims (channel_id, organization_id, claimed_at, claim_id);

-- Every change of a claim's state, and which application made it.
CREATE TABLE claim_changes (
    claim_id   TEXT NOT NULL REFERENCES reward_claims (claim_id),
    from_state TEXT NOT NULL,
    to_state   TEXT NOT NULL,
    client_id  TEXT NOT NULL,
    changed_at BIGINT NOT NULL
);
CREATE INDEX claim_changes_of_claim ON claim_changes (claim_id, changed_at);
