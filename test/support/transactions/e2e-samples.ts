import { type KeyWishes, openForUse } from '../service/operator.ts';
import type { ServiceProcess } from '../service/service-process.ts';
import { confirmedData, externalData } from './records.ts';

export interface EventLine {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** September, the range that most tests ask for. */
export const SEPTEMBER = 'from=2026-09-01T00:00:00Z&to=2026-09-30T23:59:59.999Z';

export const confirmed = (id: number, overrides: Readonly<Record<string, unknown>> = {}): EventLine => ({
  type: 'TransactionConfirmed',
  data: confirmedData({ transaction_id: id, ...overrides }),
});

export const external = (id: number, overrides: Readonly<Record<string, unknown>> = {}): EventLine => ({
  type: 'ExternalTransactionRecorded',
  data: externalData({ transaction_id: id, ...overrides }),
});

export const voided = (id: number, overrides: Readonly<Record<string, unknown>> = {}): EventLine => ({
  type: 'TransactionVoided',
  data: {
    transaction_id: id,
    account_id: 7,
    voided_at: '2026-09-20T10:00:00.000Z',
    reason: 'duplicate',
    ...overrides,
  },
});

export const cancelled = (id: number, overrides: Readonly<Record<string, unknown>> = {}): EventLine => ({
  type: 'TransactionCancelled',
  data: {
    transaction_id: id,
    account_id: 7,
    cancelled_at: '2026-09-20T10:00:00.000Z',
    reason: null,
    ...overrides,
  },
});

export const linesOf = (events: readonly EventLine[]): string =>
  events.map((event) => `${JSON.stringify(event)}\n`).join('');

/** `count` confirmed transactions of account 7, a minute apart from 1 September on. */
export function minutely(count: number, firstId = 1): EventLine[] {
  return Array.from({ length: count }, (_, index) =>
    confirmed(firstId + index, {
      created_at: new Date(Date.UTC(2026, 8, 1) + index * 60_000).toISOString(),
    }),
  );
}

/** Opens an account for use. Resolves with its key once every process of the service knows it. */
export async function openAccount(
  service: ServiceProcess,
  { id = 7, ...wishes }: KeyWishes & { readonly id?: number } = {},
): Promise<{ key: string; prefix: string }> {
  return service.operator.provision(id, openForUse(id), wishes);
}

/** Records the events and waits until the service shows them. */
export async function importEvents(service: ServiceProcess, events: readonly EventLine[]): Promise<void> {
  await service.operator.import(linesOf(events), { wait: true });
}

export const idsOf = (body: { data: readonly { id: number }[] }): number[] => body.data.map(({ id }) => id);
