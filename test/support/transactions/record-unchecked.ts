import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { binaryEvent, EventStoreDBClient, jsonEvent } from '@eventstore/db-client';
import type { ServiceProcess } from '../service/service-process.ts';

export interface UncheckedEvent {
  readonly type: string;
  /** The data. A text is written as it is, so it need not be JSON. */
  readonly data: unknown;
}

/** Records an event as the operator's core system does: directly in the service's store, unchecked. */
export async function recordUnchecked(
  service: ServiceProcess,
  stream: string,
  event: UncheckedEvent,
): Promise<void> {
  const { EVENTSTORE_URL: url } = service.operator.config.ofEngines;
  const at = new Date().toISOString();
  const metadata = { schema_version: 1, actor: 'core', command: 'core', at };
  if (url === undefined) intoFile(join(service.dataDir, 'events.db'), stream, event, metadata);
  else await intoServer(url, stream, event, metadata);
}

function intoFile(path: string, stream: string, { type, data }: UncheckedEvent, metadata: object): void {
  const db = new DatabaseSync(path, { timeout: 5_000 });
  const next = '(SELECT coalesce(max(revision) + 1, 0) FROM events WHERE stream = ?)';
  db.prepare(
    `INSERT INTO events (stream, revision, id, type, recorded_at, data, metadata) VALUES (?, ${next}, ?, ?, ?, ?, ?)`,
  ).run(
    stream,
    stream,
    randomUUID(),
    type,
    Date.now(),
    typeof data === 'string' ? data : JSON.stringify(data),
    JSON.stringify(metadata),
  );
  db.close();
}

async function intoServer(
  url: string,
  stream: string,
  { type, data }: UncheckedEvent,
  metadata: Readonly<Record<string, unknown>>,
): Promise<void> {
  const client = EventStoreDBClient.connectionString(url);
  const event =
    typeof data === 'string'
      ? binaryEvent({ type, data: Buffer.from(data), metadata })
      : jsonEvent({ type, data: data as Record<string, unknown>, metadata });
  await client.appendToStream(stream, event);
  await client.dispose();
}
