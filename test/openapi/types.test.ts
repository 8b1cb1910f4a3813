import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it } from 'vitest';
import { ROOT, readDocument } from '../support/documents.ts';
import type { Answer } from '../support/fetch-answer.ts';
import { startTestApi } from '../support/service/api.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { showingRecord } from '../support/transactions/records.ts';

const run = promisify(execFile);
const CLIENT = join(ROOT, 'test/openapi/client/typed-client.ts');
const RANGE = { from: '2026-09-01T00:00:00Z', to: '2026-09-30T00:00:00Z' };

/** The client's functions, whose types exist in the folder of the generated ones alone. */
interface Client {
  listAll(
    send: (query: string) => Promise<{ ok: true; page: unknown } | { ok: false; error: unknown }>,
    query: object,
  ): Promise<{ readonly id: number }[]>;
  received(event: object): object | undefined;
}

describe('types made of docs/openapi.yaml', () => {
  let types = '';

  beforeAll(async () => {
    ({ stdout: types } = await run(process.execPath, [join(ROOT, 'test/support/openapi/print-types.ts')]));
  });

  /** What the compiler finds wrong with the client beside these types. */
  async function faultsWith(text: string): Promise<string> {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    writeFileSync(join(folder, 'api-types.ts'), text);
    copyFileSync(CLIENT, join(folder, 'typed-client.ts'));
    const { compilerOptions } = JSON.parse(readDocument('tsconfig.json'));
    const options = { ...compilerOptions, types: [] };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }));
    const compiled = run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', folder]);
    return compiled.then(
      () => '',
      (error: { stdout: string }) => error.stdout,
    );
  }

  it('are what a client compiles against', async () => {
    expect(await faultsWith(types)).toBe('');
  });

  it('are noticed when they change', async () => {
    const changed = types.replace(
      'confirmed_at: components["schemas"]["DateTime"] | null',
      'confirmed_at: Date',
    );
    expect(changed).not.toBe(types);
    expect(await faultsWith(changed)).toContain('typed-client.ts');
    expect(await faultsWith(types.replace(' | "NOT_FOUND"', ''))).toContain('NOT_FOUND');
  });
});

describe('the client', () => {
  it('reads every page of the running API', async () => {
    const { listAll } = await client();
    const api = await startTestApi();
    await api.show(...[1, 2, 3, 4, 5].map((id) => showingRecord(id)));
    const send = async (query: string) => {
      const { status, body }: Answer = await api.get(query);
      return status === 200 ? { ok: true as const, page: body } : { ok: false as const, error: body };
    };
    const ids = async (query: object) => (await listAll(send, { ...RANGE, ...query })).map(({ id }) => id);
    expect(await ids({ limit: 2, status: ['CONFIRMED', 'EXTERNAL'] })).toEqual([5, 4, 3, 2, 1]);
    expect(await ids({ status: ['EXTERNAL'], corporate_id: [31] })).toEqual([5, 3, 1]);
    await expect(ids({ limit: 0 })).rejects.toThrow(
      'VALIDATION_FAILED; correct it; limit must be at least 1',
    );
  });

  it('tells the events of a webhook apart', async () => {
    const { received } = await client();
    expect(received({ type: 'transaction.external', data: { transaction: { id: 5 } } })).toEqual({ id: 5 });
    expect(received({ type: 'webhook.test', data: {} })).toBeUndefined();
  });

  const client = async (): Promise<Client> => import(pathToFileURL(CLIENT).href);
});
