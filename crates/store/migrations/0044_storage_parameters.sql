-- PostgreSQL vacuums these tables sooner than after a fifth of their rows has changed. The upkeep of partitions sets the
-- parameters of tables that have partitions.

-- on PostgreSQL
-- Each call with events writes a row and deletes it within 100 ms, so the table has few rows at any time.
ALTER TABLE event_outbox SET (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0);
-- Rows come and go, or change, with each connect, subscribe, sign-in, call or chat message.
ALTER TABLE session_urls SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE session_owners SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE session_changes SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE access_tokens SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE refresh_tokens SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE browser_sessions SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE idempotency_keys SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE chat_speakers SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);
