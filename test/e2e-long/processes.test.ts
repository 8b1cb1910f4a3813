import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folder } from '../support/service/commands.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import {
  confirmed,
  importEvents,
  linesOf,
  openAccount,
  SEPTEMBER,
} from '../support/transactions/e2e-samples.ts';
import { until } from '../support/waiting.ts';

describe('several processes on one store', () => {
  it('may each have some of the roles', async () => {
    const dataDir = join(folder(), 'data');
    const projector = await new ServiceProcess({ dataDir, args: ['--role', 'projector'] }).start();
    const api = await new ServiceProcess({ dataDir, args: ['--role', 'api'] }).start();
    expect(projector.url).toBe('');
    const { key } = await openAccount(api);
    await importEvents(api, [confirmed(501)]);
    const answered = async () => (await api.get(`/transactions?${SEPTEMBER}`, { key })).body.data.length;
    expect(await answered()).toBe(1);
    await projector.kill();
    await api.done(['transaction', 'import', '-'], { stdin: linesOf([confirmed(502)]) });
    expect(await answered()).toBe(1);
    await projector.start();
    await until(async () => (await answered()) === 2);
  });
});
