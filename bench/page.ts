import { join } from 'node:path';
import { TransactionDatabase } from './conventional/database.ts';
import { documentsOf } from './conventional/documents.ts';
import type { ConventionalOptions } from './conventional/server.ts';
import { buildData } from './support/build-data.ts';
import { startChild } from './support/child.ts';
import { PageClient } from './support/page-client.ts';
import { drawFrom, drawPages, fullOnBoth, prepareRequests } from './support/page-draws.ts';
import { median, print, reportBelow, reportRatio, runPairs, show } from './support/pairs.ts';
import type { Customer } from './support/provision.ts';
import { sampleEvents } from './support/sample-events.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';

const ROWS = 20_000;
const CONNECTIONS = 16;
const RUN_MS = 2_000;
const DRAWS = 200;
const CONVENTIONAL = join(import.meta.dirname, 'conventional/server.ts');

/** Measures a page of 50 records with 100 image URLs from one API process, against the conventional implementation. */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const dataDir = join(folder, 'data');
    const customers = await buildData(dataDir, ROWS);
    const serve = await startServe({ dataDir, roles: ['api'] });
    const conventional = await startConventional(folder, dataDir, customers);
    const ours = new PageClient(serve.url, CONNECTIONS);
    const theirs = new PageClient(conventional.url, CONNECTIONS);
    try {
      return await compare(ours, theirs, customers);
    } finally {
      await Promise.all([ours.close(), theirs.close()]);
      await Promise.all([serve.stop(), conventional.stop()]);
    }
  });
}

async function compare(
  ours: PageClient,
  theirs: PageClient,
  customers: readonly [Customer, ...Customer[]],
): Promise<boolean> {
  const draws = drawPages(customers, DRAWS);
  const requests = fullOnBoth(
    await prepareRequests(ours, draws, customers),
    await prepareRequests(theirs, draws, customers),
  );
  if (requests.ours.some(({ firstId }, index) => firstId !== requests.baseline[index]?.firstId)) {
    throw new Error('the two servers answer the same draw with different pages');
  }
  print(`  ${requests.ours.length} full pages from ${DRAWS} draws`);
  const loads = { durationMs: RUN_MS };
  let seed = 0;
  const pairs = await runPairs({
    baseline: () => theirs.load({ ...loads, next: drawFrom(requests.baseline, seed++ >> 1) }),
    ours: () => ours.load({ ...loads, next: drawFrom(requests.ours, seed++ >> 1) }),
  });
  const rates = {
    ours: pairs.ours.map((load) => load.requestsPerSecond),
    baseline: pairs.baseline.map((load) => load.requestsPerSecond),
  };
  const faster = reportRatio({
    what: 'page',
    unit: 'requests/s',
    pairs: rates,
    target: { ratio: 18, is: 'at least' },
  });
  for (const [who, side] of [
    ['ours', pairs.ours],
    ['baseline', pairs.baseline],
  ] as const) {
    const p50 = median(side.map((load) => load.p50Ms));
    const p99 = median(side.map((load) => load.p99Ms));
    print(`  ${who}: p50 ${show(p50)} ms, p99 ${show(p99)} ms at ${CONNECTIONS} connections`);
  }
  const p99Ms = median(pairs.ours.map((load) => load.p99Ms));
  const quick = reportBelow({ what: 'page, p99 of ours', unit: 'ms', value: p99Ms, limit: 30 });
  return faster && quick;
}

async function startConventional(folder: string, dataDir: string, customers: readonly Customer[]) {
  const databasePath = join(folder, 'conventional.db');
  const database = new TransactionDatabase(databasePath);
  database.insertAll(documentsOf(sampleEvents({ lines: ROWS, withPhotos: true })));
  database.close();
  const options: ConventionalOptions = {
    databasePath,
    certPath: join(dataDir, 'tls-cert.pem'),
    keyPath: join(dataDir, 'tls-key.pem'),
    customers: customers.map(({ account, key }) => [
      key,
      {
        accountId: account.id,
        driverMobile: true,
        corporateIds: account.corporates.map(({ id }) => id),
        corporateGroupIds: account.groups.map(({ id }) => id),
      },
    ]),
  };
  const child = startChild({
    command: process.execPath,
    args: [CONVENTIONAL, JSON.stringify(options)],
    outputFile: join(folder, 'conventional.log'),
  });
  const url = await child.line((line) => (JSON.parse(line) as { url: string }).url);
  return { ...child, url };
}
