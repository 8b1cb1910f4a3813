import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { watchSources } from '../support/reading/ran.ts';
import { filesToRead, readingList } from '../support/reading/reading-list.ts';
import { folder } from '../support/service/commands.ts';
import { until } from '../support/waiting.ts';

const PROBE = join(import.meta.dirname, '../support/reading/probe.ts');
/** The number of rounds. Sources that timers run now and then ran in one round, not in each. */
const ROUNDS = 4;
const THREADS = 3;

/** The follower of accounts reads the whole log in its thread, and neither a page nor a delivery waits for it. */
const isOfAccounts = (source: string): boolean => source.endsWith('src/accounts/rows/follower.ts');

const OF_ENDS = ['src/push/ends.ts', 'src/event-store/follow.ts', 'src/event-store/store-identity.ts'];

/** Starts a service with these roles whose threads report which sources ran. */
async function start(...roles: readonly string[]) {
  const written = join(folder(), 'probe');
  mkdirSync(written);
  const push = await PushService.prepare(
    {},
    roles.flatMap((role) => ['--role', role]),
  );
  await push.service.start({ NODE_OPTIONS: `--import ${PROBE}`, FUEL_TEST_PROBE: written });
  const customer = await push.customer(1);
  let count = 0;
  const sourcesRun = async (): Promise<string[]> => {
    count += 1;
    process.kill(push.service.pid, 'SIGUSR2');
    const names = () =>
      readdirSync(written).filter((name) => /^\d+-\d+$/.test(name) && name.startsWith(`${count}-`));
    await until(() => names().length === THREADS);
    const threads = names().map((name) => readFileSync(join(written, name), 'utf8').split('\n'));
    return threads.filter((sources) => !sources.some(isOfAccounts)).flat();
  };
  return { push, customer, sourcesRun };
}

/** Returns what ran in each round of this work, after a first round that loads what later ones use. */
async function ranInEach(work: () => Promise<string[]>): Promise<string[]> {
  await work();
  const rounds: Set<string>[] = [];
  while (rounds.length < ROUNDS) rounds.push(filesToRead(await work()));
  return [...rounds.reduce((all, round) => all.intersection(round))].sort();
}

it.skipIf(onServers)(
  'a transaction runs, from its line to a page, through the files that docs/reading-lists.md lists, and no other',
  async () => {
    const { push, customer, sourcesRun } = await start('api', 'projector');
    const importRun = watchSources();
    const day = 86_400_000;
    const [from, to] = [-day, day].map((ms) => new Date(Date.now() + ms).toISOString());
    const ran = await ranInEach(async () => {
      await sourcesRun();
      const [event] = push.made(1, 1);
      if (event === undefined) throw new Error('no event was made');
      importRun();
      await push.record([event], { wait: false });
      const imported = importRun();
      await until(async () => {
        const { text } = await push.service.get(`/transactions?from=${from}&to=${to}`, { key: customer.key });
        return text.includes(`{"id":${event.data.transaction_id},`);
      });
      return [...imported, ...(await sourcesRun())];
    });
    // Sealing reads the log too, but no page waits for it.
    const onItsPath = ran.filter((path) => !path.startsWith('src/seals/'));
    expect(onItsPath).toEqual(readingList("One transaction's path").toSorted());
  },
);

it.skipIf(onServers)(
  'a delivery runs, from its event to the recorded answer, through the files that docs/reading-lists.md lists, and no other',
  async () => {
    const { push, sourcesRun } = await start('webhooks');
    let count = 0;
    const ran = await ranInEach(async () => {
      await sourcesRun();
      await push.record(push.made(1, 1), { wait: false });
      count += 1;
      await push.settled(1, 'delivered', count);
      return sourcesRun();
    });
    // The follower of ends reads the log too, but no delivery waits for it.
    const onItsPath = ran.filter((path) => !OF_ENDS.includes(path));
    expect(onItsPath).toEqual(readingList("One delivery's path").toSorted());
  },
);
