-- The store. Organizations and principals are interned: rows name them by number, only answers by
-- text. Public ids are the 16 bytes of a UUIDv7, rising in commit order, so an index on them only
-- grows at its end. Times are milliseconds since 1970.

-- One row: what must survive besides the records. Times and fences start behind it after a restart.
CREATE TABLE titen (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  clock_ms INTEGER NOT NULL,
  fence INTEGER NOT NULL
) STRICT;
INSERT INTO titen (id, clock_ms, fence) VALUES (1, 0, 0);

-- seq is the number of the organization's newest event; events count it up without a gap.
CREATE TABLE organizations (
  id INTEGER PRIMARY KEY,
  public_id BLOB NOT NULL,
  name TEXT NOT NULL UNIQUE,
  seq INTEGER NOT NULL DEFAULT 0,
  created_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE principals (
  id INTEGER PRIMARY KEY,
  organization INTEGER NOT NULL REFERENCES organizations (id),
  name TEXT NOT NULL,
  kind INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  UNIQUE (organization, name)
) STRICT;

-- digest is the SHA-256 of the key; the key itself is stored nowhere.
CREATE TABLE keys (
  id INTEGER PRIMARY KEY,
  public_id BLOB NOT NULL UNIQUE,
  organization INTEGER NOT NULL REFERENCES organizations (id),
  principal INTEGER NOT NULL REFERENCES principals (id),
  digest BLOB NOT NULL,
  label TEXT NOT NULL,
  scopes INTEGER NOT NULL,
  max_trust INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  revoked_ms INTEGER
) STRICT;
CREATE INDEX keys_organization ON keys (organization, id);
CREATE INDEX keys_principal ON keys (principal) WHERE revoked_ms IS NULL;

-- Leases, the events and their audience are what every acquire writes, so their rows lie in the order
-- of their keys, which rise, and they have no second index that could do without: a write goes to
-- the end of a table. For the same reason they have no foreign keys: the writer has the numbers from
-- the key that was checked, and nothing deletes what they name.
CREATE TABLE leases (
  public_id BLOB NOT NULL PRIMARY KEY,
  organization INTEGER NOT NULL,
  resource_type TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  holder INTEGER NOT NULL,
  purpose TEXT NOT NULL,
  ttl_seconds INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  released_ms INTEGER
) STRICT, WITHOUT ROWID;
-- The single winner is the store's promise, not the handler's luck.
CREATE UNIQUE INDEX leases_unreleased ON leases (organization, resource_type, resource_id)
  WHERE released_ms IS NULL;

-- One head for each agent, subject and kind (an agent belongs to one organization).
CREATE TABLE checkpoints (
  id INTEGER PRIMARY KEY,
  public_id BLOB NOT NULL UNIQUE,
  organization INTEGER NOT NULL REFERENCES organizations (id),
  agent INTEGER NOT NULL REFERENCES principals (id),
  subject_id TEXT NOT NULL,
  kind INTEGER NOT NULL,
  run_id TEXT,
  state TEXT NOT NULL,
  state_hash TEXT NOT NULL,
  version INTEGER NOT NULL,
  ttl_seconds INTEGER NOT NULL,
  expires_ms INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  updated_ms INTEGER NOT NULL,
  UNIQUE (agent, subject_id, kind)
) STRICT;

CREATE TABLE handoffs (
  id INTEGER PRIMARY KEY,
  public_id BLOB NOT NULL UNIQUE,
  organization INTEGER NOT NULL REFERENCES organizations (id),
  sender INTEGER NOT NULL REFERENCES principals (id),
  target INTEGER NOT NULL REFERENCES principals (id),
  subject_id TEXT NOT NULL,
  checkpoint INTEGER REFERENCES checkpoints (id) ON DELETE SET NULL,
  message TEXT,
  status INTEGER NOT NULL,
  created_ms INTEGER NOT NULL,
  resolved_ms INTEGER
) STRICT;
-- Status 1 is PENDING; only queries with the number itself use this index.
CREATE INDEX handoffs_pending ON handoffs (target, id) WHERE status = 1;
CREATE INDEX handoffs_checkpoint ON handoffs (checkpoint) WHERE checkpoint IS NOT NULL;

-- The log. An event stands here if and only if its change was committed. Ids rise with seq, so the
-- id of an event is a place in the log.
CREATE TABLE events (
  organization INTEGER NOT NULL,
  public_id BLOB NOT NULL,
  seq INTEGER NOT NULL,
  kind INTEGER NOT NULL,
  actor INTEGER NOT NULL,
  resource BLOB NOT NULL,
  payload TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (organization, public_id)
) STRICT, WITHOUT ROWID;
-- Kinds 1 and 2 are those of leases, the bulk; whoever wants only others need not walk past them.
CREATE INDEX events_others ON events (organization, public_id, kind) WHERE kind > 2;

-- Who may see which event, so that nobody has to walk past what others did.
CREATE TABLE audience (
  viewer INTEGER NOT NULL,
  event BLOB NOT NULL,
  kind INTEGER NOT NULL,
  PRIMARY KEY (viewer, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX audience_others ON audience (viewer, event, kind) WHERE kind > 2;

-- First answers, for retries with the same key. principal is 0 for the owner's local socket.
CREATE TABLE idempotency (
  id INTEGER PRIMARY KEY,
  principal INTEGER NOT NULL,
  key TEXT NOT NULL,
  digest BLOB NOT NULL,
  created INTEGER NOT NULL,
  reply BLOB NOT NULL,
  created_ms INTEGER NOT NULL,
  UNIQUE (principal, key)
) STRICT;

-- Who changed what about keys and handoffs; never what was said.
CREATE TABLE audit (
  id INTEGER PRIMARY KEY,
  public_id BLOB NOT NULL,
  organization INTEGER NOT NULL REFERENCES organizations (id),
  actor INTEGER NOT NULL REFERENCES principals (id),
  action TEXT NOT NULL,
  resource TEXT NOT NULL,
  detail TEXT,
  created_ms INTEGER NOT NULL
) STRICT;
