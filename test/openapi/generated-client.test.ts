import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { BASE_PATH } from '../../src/pull/app.ts';
import { ROOT } from '../support/documents.ts';
import { KEY, startTestApi } from '../support/service/api.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { showingRecord } from '../support/transactions/records.ts';

const run = promisify(execFile);
const ORIGIN = 'https://fuel.example';
const CLAIMS = join(ROOT, 'test/openapi/client/claims.ts');
const COMPILER = {
  strict: true,
  noEmit: true,
  target: 'esnext',
  module: 'nodenext',
  allowImportingTsExtensions: true,
  lib: ['esnext', 'dom', 'dom.iterable'],
  types: [],
};
const RANGE = { from: '2026-09-01T00:00:00Z', to: '2026-09-30T00:00:00Z' };

/** The part of the generated client that this test uses. */
interface Client {
  configure(options: object): void;
  listTransactions(args: { query: object }): Promise<{
    readonly data: readonly { readonly id: number }[];
    readonly pagination: { readonly next_cursor: string | null };
  }>;
}

it('a client that a public tool makes of docs/openapi.yaml has the types that customers rely on, and works against the API', async () => {
  const folder = temporaryFolder();
  const path = join(folder, 'client.ts');
  const args = ['generate-client', 'docs/openapi.yaml', '-o', path, '--import-ext', 'ts'];
  const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
  await run(process.execPath, [join(ROOT, 'node_modules/.bin/redocly'), ...args], { cwd: ROOT, env });
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: COMPILER }));
  copyFileSync(CLAIMS, join(folder, 'claims.ts'));
  const compiled = run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder]);
  expect(await compiled.catch(({ stdout }: { stdout: string }) => ({ stdout }))).toMatchObject({
    stdout: '',
  });

  const { configure, listTransactions }: Client = await import(pathToFileURL(path).href);
  const api = await startTestApi();
  await api.show(...[1, 2, 3, 4, 5].map((id) => showingRecord(id)));
  configure({
    serverUrl: `${ORIGIN}${BASE_PATH}`,
    auth: { apiKey: { apiKey: KEY } },
    fetch: async (url: string, { headers }: { headers: Record<string, string> }) => {
      const sent = Object.fromEntries(new Headers(headers));
      const answer = await api.get(url.slice(ORIGIN.length), { key: null, headers: sent });
      return new Response(answer.text, {
        status: answer.status,
        headers: answer.headers as Record<string, string>,
      });
    },
  });

  const query = { ...RANGE, limit: 3, corporate_id: [31], status: ['CONFIRMED', 'EXTERNAL'] };
  const first = await listTransactions({ query });
  expect(first.data.map(({ id }) => id)).toEqual([5, 4, 3]);
  const cursor = first.pagination.next_cursor;
  const last = await listTransactions({ query: { ...query, cursor } });
  expect([last.data.map(({ id }) => id), last.pagination.next_cursor]).toEqual([[2, 1], null]);
  await expect(listTransactions({ query: { ...query, corporate_id: [31, 99] } })).rejects.toMatchObject({
    status: 404,
    body: { error: { code: 'CORPORATE_NOT_FOUND' } },
  });
});
