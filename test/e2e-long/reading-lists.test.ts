import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { watchFunctions } from '../support/reading/ran.ts';
import { fileOf, functionsToRead, readingList } from '../support/reading/reading-list.ts';
import { folder } from '../support/service/commands.ts';
import { until } from '../support/waiting.ts';

const PROBE = join(import.meta.dirname, '../support/reading/probe.ts');
/** The number of rounds. A function that runs now and then did so in one of them, not in each. */
const ROUNDS = 4;
const THREADS = 3;
/** Timers repeat their work after 15 s at most, or so rarely that it is not in each round. */
const TIMERS_MS = 20_000;

/** The follower of accounts reads the whole log in its thread, and neither a page nor a delivery waits for it. */
const isOfAccounts = (name: string): boolean => fileOf(name).endsWith('src/accounts/rows/follower.ts');

/** These read the log too, but no page waits for them, or no delivery. */
const BESIDE_PAGES = ['src/seals/'];
const BESIDE_DELIVERIES = ['src/push/ends.ts', 'src/event-store/follow.ts'];
/** A path runs through these files only if it takes longer than usual. */
const WHEN_SLOW = [
  'src/pull/stored-requests.ts', // after a second the request is stored
  'src/push/targets/resolve-name.ts', // after some seconds the idle connection is closed
];

/** Starts a service with these roles whose threads report which functions ran. */
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
  const functionsRun = async (): Promise<string[]> => {
    count += 1;
    process.kill(push.service.pid, 'SIGUSR2');
    const names = () =>
      readdirSync(written).filter((name) => /^\d+-\d+$/.test(name) && name.startsWith(`${count}-`));
    await until(() => names().length === THREADS);
    const threads = names().map((name) => readFileSync(join(written, name), 'utf8').split('\n'));
    return threads.filter((sources) => !sources.some(isOfAccounts)).flat();
  };
  return { push, customer, functionsRun };
}

interface Path {
  readonly list: readonly string[];
  /** Files, or folders, that run at the same time and for which the path does not wait. */
  readonly beside: readonly string[];
  /** Takes the path once. Returns the functions that ran. */
  readonly work: () => Promise<string[]>;
  readonly functionsRun: () => Promise<string[]>;
}

/**
 * Returns the files that a path runs through: those on the list of which a function ran in each round, and any other of which
 * one did that no timer runs. A first round loads what later ones use.
 */
async function filesOnPath({ list, beside, work, functionsRun }: Path): Promise<string[]> {
  await work();
  const rounds: Set<string>[] = [];
  while (rounds.length < ROUNDS) rounds.push(functionsToRead(await work()));
  const ran = [...rounds.reduce((all, round) => all.intersection(round))];
  const [listed, others] = [new Set<string>(), new Set<string>()];
  for (const name of ran) {
    const file = fileOf(name);
    if (list.includes(file)) listed.add(file);
    else if (![...beside, ...WHEN_SLOW].some((start) => file.startsWith(start))) others.add(name);
  }
  const endMs = performance.now() + TIMERS_MS;
  while (others.size > 0 && performance.now() < endMs)
    for (const name of functionsToRead(await functionsRun())) others.delete(name);
  return [...new Set([...listed, ...[...others].map(fileOf)])].sort();
}

it.skipIf(onServers)(
  'a transaction runs, from its line to a page, through the files that docs/reading-lists.md lists, and no other',
  async () => {
    const { push, customer, functionsRun } = await start('api', 'projector');
    const importRun = watchFunctions();
    const day = 86_400_000;
    const [from, to] = [-day, day].map((ms) => new Date(Date.now() + ms).toISOString());
    const { all: list } = readingList("One transaction's path");
    const work = async () => {
      await functionsRun();
      const [event] = push.made(1, 1);
      if (event === undefined) throw new Error('no event was made');
      importRun();
      await push.record([event], { wait: false });
      const imported = importRun();
      await until(async () => {
        const { text } = await push.service.get(`/transactions?from=${from}&to=${to}`, { key: customer.key });
        return text.includes(`{"id":${event.data.transaction_id},`);
      });
      return [...imported, ...(await functionsRun())];
    };
    const path = { list, beside: BESIDE_PAGES, work, functionsRun };
    expect(await filesOnPath(path)).toEqual(list.toSorted());
  },
);

it.skipIf(onServers)(
  'a delivery runs, from its event to the recorded answer, through the files that docs/reading-lists.md lists, and no other',
  async () => {
    const { push, functionsRun } = await start('webhooks');
    let count = 0;
    const { all: list } = readingList("One delivery's path");
    const work = async () => {
      await functionsRun();
      await push.record(push.made(1, 1), { wait: false });
      count += 1;
      await push.settled(1, 'delivered', count);
      return functionsRun();
    };
    const path = { list, beside: BESIDE_DELIVERIES, work, functionsRun };
    expect(await filesOnPath(path)).toEqual(list.toSorted());
  },
);
