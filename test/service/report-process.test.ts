import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { sinceBoot, systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { loadConfig, openEngines } from '../../src/engines/engines.ts';
import type { Engines } from '../../src/service/engines/engines.ts';
import { Standing } from '../../src/service/ops/standing.ts';
import { reportProcess } from '../../src/service/report-process.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { until } from '../support/waiting.ts';

async function start(directories: readonly string[], standing = new Standing()) {
  const config = loadConfig({ FUEL_DATA_DIR: join(temporaryFolder(), 'data') }, 'command');
  const engines = await openEngines(config, systemClock);
  onTestFinished(() => engines.close());
  const report = (on: Engines) =>
    reportProcess({
      ...{ engines: on, clock: systemClock, log: silentLog, id: 'this', roles: ['api'] },
      ...{ directories, standing },
    });
  const reported = report(engines);
  let isStopped = false;
  const stop = async (): Promise<void> => {
    if (!isStopped) await reported.stop();
    isStopped = true;
  };
  onTestFinished(stop);
  const live = async () => (await engines.coordination().live(60_000)).map((one) => one.directoryPosition);
  return { engines, reported, standing, stop, live };
}

test('a process is as far as the directory of it that is furthest behind, once all have a position', async () => {
  const { reported, live } = await start(['main', 'webhooks', 'api-2']);
  await until(async () => (await live()).length === 1, 5_000);
  reported.moved('main', 10);
  reported.moved('api-2', 9);
  await new Promise((resolve) => setTimeout(resolve, 80)); // more than between two reports
  expect(await live()).toEqual([null]);
  reported.moved('webhooks', 12);
  await until(async () => (await live())[0] === 9, 5_000);
  reported.moved('api-2', 11);
  await until(async () => (await live())[0] === 10, 5_000);
});

test('a process becomes a member by its report, and leaves when it stops', async () => {
  const { standing, live, stop } = await start(['main']);
  await until(async () => standing.isMember(sinceBoot.now(), 0), 5_000);
  expect(await live()).toEqual([null]);
  await stop();
  expect(await live()).toEqual([]);
});
