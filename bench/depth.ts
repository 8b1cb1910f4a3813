import { join } from 'node:path';
import { buildData } from './support/build-data.ts';
import { PageClient } from './support/page-client.ts';
import { drawFrom, drawPages, fullOnBoth, prepareRequests } from './support/page-draws.ts';
import { print, reportRatio, runPairs } from './support/pairs.ts';
import type { Customer } from './support/provision.ts';
import { inScratchFolder } from './support/scratch.ts';
import { startServe } from './support/serve.ts';

const ROWS = Number(process.env.BENCH_ROWS ?? 2_000_000);
const FEW_ROWS = 20_000;
const CONNECTIONS = 16;
const RUN_MS = 2_000;
const DRAWS = 200;

/**
 * Measures the same page from 2,000,000 rows (`BENCH_ROWS` for fewer) and from 20,000, each in a separate API process.
 */
export async function run(): Promise<boolean> {
  return inScratchFolder(async (folder) => {
    const many = await startFilled(join(folder, 'many'), ROWS);
    const few = await startFilled(join(folder, 'few'), FEW_ROWS);
    try {
      const draws = drawPages(few.customers, DRAWS);
      const requests = fullOnBoth(
        await prepareRequests(many.client, draws, many.customers),
        await prepareRequests(few.client, draws, few.customers),
      );
      print(`  ${requests.ours.length} full pages; baseline: ${FEW_ROWS.toLocaleString('en')} rows`);
      let seed = 0;
      const p50Ms = async (client: PageClient, pages: typeof requests.ours): Promise<number> => {
        const next = drawFrom(pages, seed++ >> 1);
        return (await client.load({ durationMs: RUN_MS, next })).p50Ms;
      };
      const pairs = await runPairs({
        baseline: () => p50Ms(few.client, requests.baseline),
        ours: () => p50Ms(many.client, requests.ours),
      });
      const what = `page from ${ROWS.toLocaleString('en')} rows, median latency`;
      return reportRatio({ what, unit: 'ms', pairs, target: { ratio: 1.25, is: 'at most' } });
    } finally {
      await Promise.all([many.stop(), few.stop()]);
    }
  });
}

interface Filled {
  readonly customers: readonly [Customer, ...Customer[]];
  readonly client: PageClient;
  stop(): Promise<void>;
}

async function startFilled(dataDir: string, rows: number): Promise<Filled> {
  const customers = await buildData(dataDir, rows);
  const serve = await startServe({ dataDir, roles: ['api'] });
  const client = new PageClient(serve.url, CONNECTIONS);
  return {
    customers,
    client,
    async stop() {
      await client.close();
      await serve.stop();
    },
  };
}
