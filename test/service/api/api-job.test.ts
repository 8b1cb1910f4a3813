import { Agent, request } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { claimPort } from '../../../src/base/listen.ts';
import { silentLog } from '../../../src/base/log.ts';
import { openEngines } from '../../../src/engines/engines.ts';
import type { EventStore } from '../../../src/event-store/event-store.ts';
import { BASE_PATH } from '../../../src/pull/app.ts';
import type { TransactionsView } from '../../../src/pull/view/transactions-view.ts';
import { api } from '../../../src/service/api/api-job.ts';
import { Standing } from '../../../src/service/ops/standing.ts';
import { slowlyLeft } from '../../support/event-store/store-with.ts';
import { testCertificate } from '../../support/service/api.ts';
import { jobContext } from '../../support/service/job-context.ts';
import { Operator, openForUse } from '../../support/service/operator.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { SEPTEMBER } from '../../support/transactions/e2e-samples.ts';
import { until } from '../../support/waiting.ts';

const SOON_MS = 10_000;
const ACCOUNT = 7;

/** An API thread's job, run in this thread, on this store and with these methods of its view in place of theirs. */
async function running(
  on: (store: EventStore) => EventStore,
  seen: (view: TransactionsView) => Partial<TransactionsView>,
) {
  const operator = new Operator({ FUEL_DATA_DIR: temporaryFolder(), FUEL_LOG_LEVEL: 'silent' });
  const { key } = await operator.provision(ACCOUNT, openForUse(ACCOUNT));
  const engines = await openEngines(operator.config, systemClock);
  const store = on(engines.store());
  await engines.view().reset('any', 0);
  const view = Object.assign(Object.create(engines.view()), seen(engines.view()));
  const given = jobContext(operator.config, { ...engines, store: () => store, view: () => view });
  const standing = new Standing();
  standing.join(store, { log: silentLog, signal: given.context.signal });
  standing.knownUntil(Number.MAX_SAFE_INTEGER);
  const { port } = await claimPort({ host: '127.0.0.1', port: 0 });
  const ended = api(given.context, {
    ...{ place: { host: '127.0.0.1', port }, pem: await testCertificate(), shared: undefined },
    ...{ standing: standing.memory, directory: undefined },
  });
  const agent = new Agent({ connect: { rejectUnauthorized: false } });
  onTestFinished(async () => {
    given.stop();
    await agent.destroy();
    await ended;
    await engines.close();
  });
  await until(
    async () => given.reports.some((one) => one.kind === 'ready' && one.missing === undefined),
    SOON_MS,
  );
  const get = async (): Promise<number> => {
    const headers = { 'x-api-key': key };
    const url = `https://127.0.0.1:${port}${BASE_PATH}/transactions?${SEPTEMBER}`;
    const { statusCode, body } = await request(url, { headers, dispatcher: agent });
    await body.dump();
    return statusCode;
  };
  return { ...given, operator, ended, get };
}

test('an API thread that stops follows the accounts until its last request is answered', async () => {
  const [asked, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { operator, get, reports, stop, ended } = await running(
    (store) => store,
    (view) => ({
      async page(...query) {
        asked.resolve();
        await answer.promise;
        return view.page(...query);
      },
    }),
  );
  const status = get();
  await asked.promise;
  stop();
  const before = reports.length;
  await operator.change(ACCOUNT, { type: 'DisableIntegration', accountId: ACCOUNT });
  await until(async () => reports.slice(before).some(({ kind }) => kind === 'moved'), SOON_MS);
  answer.resolve();
  expect(await status).toBe(200);
  await ended;
});

test('an API thread has ended when nothing of it reads the event store', async () => {
  let state = { isRead: false };
  const { stop, ended } = await running(
    (store) => {
      const left = slowlyLeft(store);
      state = left.state;
      return left.store;
    },
    () => ({}),
  );
  expect(state.isRead).toBe(true);
  stop();
  await ended;
  expect(state.isRead).toBe(false);
});
