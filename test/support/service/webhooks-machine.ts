import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Registry } from 'prom-client';
import { onTestFinished } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLog } from '../../../src/base/log.ts';
import { openEngines } from '../../../src/engines/engines.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { workMetrics } from '../../../src/service/ops/work-metrics.ts';
import { accounts } from '../../../src/service/roles/accounts.ts';
import { webhooks } from '../../../src/service/roles/webhooks.ts';
import type { FromThread } from '../../../src/service/threads/job.ts';
import { listed } from '../deliveries/listed.ts';
import { WebhookReceiver } from '../deliveries/webhook-receiver.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { confirmed, linesOf } from '../transactions/e2e-samples.ts';
import { until } from '../waiting.ts';
import { Operator, openForUse } from './operator.ts';

export const PATH = '/hook';
export const ACCOUNT = 7;

export type Machine = Awaited<ReturnType<typeof machine>>;

/** A machine with a customer's receiver, on which the role `webhooks` can be run. */
export async function machine() {
  const folder = temporaryFolder();
  const receiver = await WebhookReceiver.open();
  writeFileSync(join(folder, 'ca.pem'), receiver.ca);
  const operator = new Operator({
    FUEL_DATA_DIR: join(folder, 'data'),
    FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
    FUEL_WEBHOOK_CA: join(folder, 'ca.pem'),
    FUEL_WEBHOOK_RETRY_DELAYS: '100ms,300ms',
    FUEL_DELIVERY_RETENTION_DAYS: '10',
  });
  const engines = await openEngines(operator.config, systemClock);
  await storeIdentity(engines.store(), systemClock); // a service names its store before its roles start
  const runs: (() => Promise<void>)[] = [];
  onTestFinished(async () => {
    for (const stop of runs) await stop();
    await engines.close();
  });

  const provision = () =>
    operator.provision(ACCOUNT, openForUse(ACCOUNT), { webhookUrl: receiver.url(PATH) });
  /** Records a transaction created now. */
  const record = (id: number) => {
    const now = new Date().toISOString();
    const event = confirmed(id, { account_id: ACCOUNT, created_at: now, confirmed_at: now });
    return operator.import(linesOf([event]), { wait: false });
  };
  /** Starts the role. `stop` asks it to end and waits until it has. */
  const start = (on: Engines = engines, config = operator.config) => {
    const stopping = new AbortController();
    const { promise: connected, resolve } = Promise.withResolvers<void>();
    const registry = new Registry();
    const context = {
      config,
      engines: on,
      log: silentLog,
      holder: 'this',
      signal: stopping.signal,
      metrics: workMetrics(registry),
      report(message: FromThread): void {
        if (message.kind === 'ready' && message.missing === undefined) resolve();
      },
    };
    const own = { entry: new URL('file:///unused'), clock: systemClock };
    const ended = webhooks({ ...context, ...own }, undefined);
    const following = accounts({ ...context, ...own, engines }, undefined);
    ended.catch(() => undefined); // each test awaits it if it matters
    const stop = async (): Promise<void> => {
      stopping.abort();
      await ended.catch(() => undefined);
      await following;
    };
    runs.push(stop);
    return { ended, connected, stop, registry };
  };
  const switchOff = (prefix: string) =>
    operator.change(ACCOUNT, { type: 'SwitchKeyOff', accountId: ACCOUNT, prefix, reason: 'x' });
  const logged = () => listed(engines.queue(), { accountId: ACCOUNT });
  const settled = (state: string, count = 1) =>
    until(async () => (await logged()).filter((each) => each.state === state).length === count);
  /** Returns the attempts of the only delivery. */
  const attempts = async () => {
    const [only] = await logged();
    return (await engines.queue().find(only?.id ?? ''))?.attempts ?? [];
  };
  return {
    config: operator.config,
    engines,
    receiver,
    provision,
    record,
    switchOff,
    start,
    logged,
    settled,
    attempts,
  };
}
