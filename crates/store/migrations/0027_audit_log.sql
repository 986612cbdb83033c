-- Who changed what over the platform API and on the operator pages. An entry is written in the transaction of its change.

-- entry_id begins with the time. actor_name: '' for a person, whose name is read from the channel. details: a JSON object.
CREATE TABLE audit_log (
    entry_id TEXT PRIMARY KEY,
    created_at BIGINT NOT NULL,
    actor_kind TEXT NOT NULL,
    actor_id TEXT NOT NULL,
    actor_name TEXT NOT NULL,
    action TEXT NOT NULL,
    subject_kind TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    details TEXT NOT NULL,
    request_id TEXT NOT NULL
);
CREATE INDEX audit_log_of_subject ON audit_log (subject_id, entry_id);
CREATE INDEX audit_log_of_actor ON audit_log (actor_id, entry_id);
CREATE INDEX audit_log_of_action ON audit_log (action, entry_id);
CREATE INDEX audit_log_age ON audit_log (created_at);
