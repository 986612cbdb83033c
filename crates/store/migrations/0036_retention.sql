-- Old changes of claims are deleted by their time.
CREATE INDEX claim_changes_age ON claim_changes (changed_at);
