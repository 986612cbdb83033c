-- Test messages to webhooks, and when each attempt was signed.

-- A test message reports no claim: its claim_id is empty.
CREATE INDEX webhook_deliveries_tests ON webhook_deliveries (webhook_id, message_id) WHERE claim_id = '';

-- The time in the headers and in the body of the attempt. null for attempts before this column.
ALTER TABLE webhook_attempts ADD COLUMN signed_at BIGINT;
