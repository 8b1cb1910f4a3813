import { describe, expect, it } from 'vitest';
import type { TransactionEvent } from '../../src/domain/transaction-events.ts';
import { newEvent } from '../../src/event-store/new-event.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  type EventLine,
  idsOf,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

const AUTHOR = { actor: 'core system', command: 'test' };
const named = (id: number, name: string): EventLine =>
  confirmed(id, { station: { id: 88, name, provider: { id: 4, name: 'Petrona' } } });

describe('a store that was written to directly', () => {
  it('with 500 texts of 100,000 characters starts: they are parked, and everything else is served', async () => {
    const service = new ServiceProcess();
    const { key } = await openAccount(service);
    const tooLong = Array.from({ length: 500 }, (_, index) => named(1_000 + index, 'x'.repeat(100_000)));
    // These are allowed, although each takes a hundred times the memory of an ordinary one.
    const large = Array.from({ length: 80 }, (_, index) =>
      confirmed(2_000 + index, { extra: Array.from({ length: 20_000 }, () => []) }),
    );
    const appends = [confirmed(1), ...tooLong, ...large, confirmed(2)].map(({ type, data }) => ({
      stream: `transaction-${data.transaction_id}`,
      expected: 'none' as const,
      events: [newEvent({ type, data } as TransactionEvent, AUTHOR, Date.now())],
    }));
    await service.operator.with((engines) => engines.store().append(appends));
    await service.start();
    const pull = () => service.get(`/transactions?${SEPTEMBER}&limit=100`, { key });
    await until(async () => (await pull()).status === 200 && idsOf((await pull()).body).length === 82);
    const shown = idsOf((await pull()).body);
    expect(shown.filter((id) => id >= 1_000 && id < 2_000)).toEqual([]);
    const parked = await service.done(['projection', 'parked', '--json']);
    expect(parked.lines).toHaveLength(500);
    expect(parked.lines[0]).toMatchObject({
      stream: 'transaction-1000',
      reason: 'station.name: must have at most 1000 characters',
    });
    expect(await service.stop()).toBe(0);
  });
});
