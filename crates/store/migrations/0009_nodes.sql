-- Nodes that do different work; what became of a node's sessions that the node has yet to hear of.

-- roles: separated by a space. session_base: where clients reach the node's sockets, while it takes new ones.
ALTER TABLE nodes ADD COLUMN roles TEXT NOT NULL DEFAULT '';
ALTER TABLE nodes ADD COLUMN session_base TEXT;
ALTER TABLE nodes ADD COLUMN started_at BIGINT NOT NULL DEFAULT 0;

-- untold_node: the node that has not read the change yet, whether or not the bus told it. The index holds no other
-- changes, so that a node asks for all of its sessions at the price of what is new.
ALTER TABLE session_changes ADD COLUMN untold_node TEXT;
CREATE INDEX session_changes_untold ON session_changes (untold_node, session_key, version)
    WHERE untold_node IS NOT NULL;

-- closing_node: the node that still has the socket of a session that somebody else ended.
ALTER TABLE sessions ADD COLUMN closing_node TEXT;
CREATE INDEX sessions_closing ON sessions (closing_node, session_key) WHERE closing_node IS NOT NULL;
