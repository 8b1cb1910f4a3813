export const VERSION = 2;

export const SCHEMA = `
  CREATE TABLE transactions (
    id INTEGER PRIMARY KEY,
    -- the whole record as JSON with its decimals as text ('45.20'), without the image links, which expire
    record TEXT NOT NULL,
    -- when a webhook brought it; NULL once a pull has shown it
    pushed_at TEXT,
    status TEXT NOT NULL AS (record ->> 'status'),
    created_at TEXT NOT NULL AS (record ->> 'created_at'),
    confirmed_at TEXT AS (record ->> 'confirmed_at'),
    correction_reference_id INTEGER AS (record ->> 'correction_reference_id'),
    corporate_id INTEGER NOT NULL AS (record ->> '$.corporate.id'),
    number_plate TEXT AS (record ->> '$.vehicle.number_plate'),
    liters TEXT NOT NULL AS (record ->> '$.fuel.liters'),
    price_per_liter TEXT NOT NULL AS (record ->> '$.fuel.price_per_liter'),
    amount TEXT NOT NULL AS (record ->> '$.fuel.amount'),
    total_fees TEXT NOT NULL AS (record ->> '$.fees.total_fees'),
    total_vat TEXT NOT NULL AS (record ->> '$.fees.total_vat'),
    total_amount TEXT NOT NULL AS (record ->> '$.fees.total_amount')
  ) STRICT;
  CREATE INDEX by_created_at ON transactions (created_at);
  CREATE TABLE removed (id INTEGER NOT NULL, record TEXT NOT NULL, removed_at TEXT NOT NULL) STRICT;
  CREATE TABLE deliveries (id TEXT PRIMARY KEY, received_at TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX by_received_at ON deliveries (received_at);
  -- the pages of the window in progress, until its last one has come
  CREATE TABLE staged (id INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT;
  CREATE TABLE sync (
    -- the prefix of the API key that the ledger was pulled with
    key TEXT,
    -- the range that is synced
    synced_from TEXT,
    synced_to TEXT,
    -- the sync in progress: where it began and ends, its window, and the page to ask for next
    begun_from TEXT,
    target TEXT,
    window_from TEXT,
    window_to TEXT,
    window_started_at TEXT,
    cursor TEXT
  ) STRICT;
  INSERT INTO sync (key) VALUES (NULL);
  PRAGMA user_version = ${VERSION};
`;

/** Made at every start, since the ledgers of earlier releases do not have them. */
export const INDEXES = `
  CREATE INDEX IF NOT EXISTS not_pulled ON transactions (created_at) WHERE pushed_at IS NOT NULL;
  CREATE INDEX IF NOT EXISTS removed_by_id ON removed (id);
`;
