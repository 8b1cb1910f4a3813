import { confirmedData, externalData } from './records.ts';
import type { ServiceProcess } from './service-process.ts';

export interface EventLine {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>>;
}

/** September: the range that most tests ask for. */
export const SEPTEMBER = 'from=2026-09-01T00:00:00Z&to=2026-09-30T23:59:59.999Z';
export const GROUP = { id: 3, name: 'Depots' };
export const CORPORATES = [
  { id: 31, name: 'North Depot' },
  { id: 32, name: 'South Depot' },
  { id: 51, name: 'Lone Yard' },
] as const;

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

export interface AccountOptions {
  readonly id?: number;
  readonly keyArgs?: readonly string[];
  /** Group 3 and corporates 31 and 32 in it, and 51 in none; `false` leaves them out. */
  readonly structure?: boolean;
}

/** Opens an account for use, by the commands that an operator gives, once the service knows it; returns its key. */
export async function openAccount(
  service: ServiceProcess,
  { id = 7, keyArgs = ['--rate-limit', '100000'], structure = false }: AccountOptions = {},
): Promise<{ key: string; prefix: string }> {
  const account = String(id);
  await service.done(['account', 'open', account, '--name', `Customer ${id}`]);
  await service.done(['account', 'integration', account, 'on']);
  await service.done(['account', 'profile', account, '--profile', 'basic', '--from', '2026-01-01T00:00:00Z']);
  if (structure) {
    await service.done(['account', 'group', account, '3', '--name', GROUP.name]);
    for (const { id: corporate, name } of CORPORATES) {
      const group = corporate === 51 ? ['--no-group'] : ['--group', '3'];
      await service.done(['account', 'corporate', account, String(corporate), '--name', name, ...group]);
    }
  }
  const issued = await service.done(['key', 'issue', account, '--json', '--wait', ...keyArgs]);
  return issued.json;
}

/** Imports the events and waits until the service shows them. */
export async function importEvents(service: ServiceProcess, events: readonly EventLine[]): Promise<void> {
  await service.done(['transaction', 'import', '-', '--wait'], { stdin: linesOf(events) });
}

export const idsOf = (body: { data: readonly { id: number }[] }): number[] => body.data.map(({ id }) => id);
