import { readToEnd } from '../../src/event-store/reads.ts';
import { STREAM_ERASED } from '../../src/event-store/recorded-event.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { Model, type ModelTransaction } from '../simulation/judge/model.ts';
import { expectedRecord } from '../support/transactions/record-oracle.ts';

type Data = Readonly<Record<string, unknown>>;

/** Reads the log of these engines into the simulation's model, and reports what the log should no longer have. */
export async function readModel(engines: Engines): Promise<{ model: Model; faults: string[] }> {
  const model = new Model();
  const streams = new Set<string>();
  for await (const { events } of readToEnd(engines.store(), { prefixes: [], after: 0 })) {
    for (const { stream } of events) streams.add(stream);
    const erased = events.filter(({ type }) => type === STREAM_ERASED);
    for (const { stream } of erased) streams.delete(stream);
    const { stringify } = JSON;
    model.read(
      events
        .filter((event) => !erased.includes(event))
        .map((event) => ({ ...event, data: stringify(event.data), metadata: stringify(event.metadata) })),
    );
  }
  const left = [...model.erased.keys()].filter((id) => streams.has(`transaction-${id}`));
  return { model, faults: left.map((id) => `the log has transaction ${id}, which was erased`) };
}

/** True if the account's only key is off at the end of the log. */
export function isKeyOff({ accounts }: Model, account: number): boolean {
  const [key] = accounts.get(account)?.keys.values() ?? [];
  return key?.isOn === false;
}

export function isRedacted({ data }: ModelTransaction): boolean {
  return (data.driver as Data).name === 'REDACTED';
}

/** Returns the record as the pull channel prints it, without `expires_at`. */
export function recordOf({ status, data }: ModelTransaction): string {
  const type = status === 'CONFIRMED' ? 'TransactionConfirmed' : 'ExternalTransactionRecorded';
  return expectedRecord(type, { ...data, driver: { ...(data.driver as Data), mobile_number: null } }, '');
}
