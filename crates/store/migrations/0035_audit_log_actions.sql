-- The entries of an actor with one action. Without it the page of a rare action reads all entries of its actor.
CREATE INDEX audit_log_of_actor_and_action ON audit_log (actor_id, action, entry_id);
