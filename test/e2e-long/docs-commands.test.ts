import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  blocksOf,
  blockWith,
  inlineCodeOf,
  readDocument,
  readOperations,
  sectionOf,
} from '../support/documents.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { lastingPort } from '../support/lasting-port.ts';
import { clone, Shell } from '../support/shell.ts';

const OPERATIONS = readOperations();
const PULL = readDocument('docs/pull-api.md');
const KEY = /svc_test_[a-z0-9]{10}_\w{43}/;
const IMPORT_ID = /\d{4}-\d\d-\d\d-[0-9a-f]{8}/;
const MORE = 150; // transactions: two pages

describe.skipIf(onServers)('on the embedded store, one after the other', () => {
  let cwd = '';
  let api = 0;
  let ops = 0;
  let service: Shell;
  let shell: Shell;
  let key = '';

  const open = (): Shell =>
    new Shell(cwd, {
      PATH: `${join(cwd, 'bin')}:${process.env.PATH}`,
      FUEL_LISTEN: `127.0.0.1:${api}`,
      FUEL_OPS_LISTEN: `127.0.0.1:${ops}`,
    });

  /** Returns the document's text with the folder of the backups below that of the test. */
  const withFolders = (text: string): string => text.replaceAll('/backups/', `${join(cwd, '../backups')}/`);

  const answerTo = (query: string): Promise<string> =>
    shell.paste(
      `curl -sS -i --cacert data/tls-cert.pem -H 'X-API-Key: ${key}' 'https://127.0.0.1:${api}${query}'\n`,
    );

  /** Returns a command and its output for each prompt of the section's first block. */
  const stepsOf = (heading: string): string[] => {
    const [console] = blocksOf(sectionOf(OPERATIONS, heading));
    return (console?.text ?? '').split(/^\$ /m).slice(1);
  };

  async function serve(): Promise<void> {
    const block = blockWith(sectionOf(OPERATIONS, '## Start and stop'), 'fuel serve');
    expect(block).toContain('npm ci\n');
    service = open();
    service.start(block.replace('npm ci\n', '')); // done: it made the packages that this test itself runs with
    await service.shows('"msg":"listening"');
    expect(service.output).toContain('valid for fuel serve');
  }

  beforeAll(async () => {
    cwd = clone();
    [api, ops] = [await lastingPort(), await lastingPort()];
    await serve();
    shell = open();
  });

  it('a customer is brought in, and each command prints what docs/operations shows', async () => {
    const steps = stepsOf('## Bring a customer in');
    expect(steps.length).toBe(8);
    for (const step of steps) {
      const [command = '', ...lines] = step.split(/(?<=\n)/);
      const printed = await shell.paste(command);
      key = KEY.exec(printed)?.[0] ?? key;
      const importId = IMPORT_ID.exec(printed)?.[0] ?? '';
      const shown = lines
        .join('')
        .replace(/svc_test_\w{10}_<43 characters>/, key)
        .replace(IMPORT_ID, importId);
      expect([command, printed]).toEqual([command, shown]);
    }
    await shell.paste('fuel account integration 7 on --wait\n'); // the view also has the imported transactions then
  });

  it('accounts are applied from a file, as docs/operations shows', async () => {
    const steps = stepsOf('## Many customers at once');
    expect(steps.length).toBe(3);
    for (const step of steps) {
      const [command = '', ...lines] = step.split(/(?<=\n)/);
      expect([command, await shell.paste(command)]).toEqual([command, lines.join('')]);
    }
  });

  it('what /readyz answers is what docs/operations names', async () => {
    const printed = await shell.paste(`curl -sS http://127.0.0.1:${ops}/readyz\n`);
    const { checks } = JSON.parse(printed) as { checks: object };
    const named = inlineCodeOf(sectionOf(OPERATIONS, '## Watching'));
    expect(Object.keys(checks).length).toBeGreaterThan(3);
    expect(named).toEqual(expect.arrayContaining(Object.keys(checks)));
  });

  it('an answer is the one that docs/pull-api.md shows in full', async () => {
    const [head, body] = blocksOf(sectionOf(PULL, '## One response in full'));
    const [line = '', , ...headers] = (head?.text ?? '').trim().split('\n');
    const [printedHead = '', printedBody = ''] = (await answerTo(line.replace('GET ', ''))).split('\r\n\r\n');
    const id = (text: string): string => text.replace(/Request-Id: [\w-]{36}/, 'Request-Id: …');
    expect(id(printedHead).split('\r\n')).toEqual(expect.arrayContaining(headers.map(id)));
    const passing = (text: string): string =>
      text.replace(/\?X-Amz-Algorithm=[^"]*/, '?').replace(/"expires_at":"[^"]*"/, '');
    expect(passing(printedBody)).toBe(passing((body?.text ?? '').replaceAll('\n', '')));
  });

  it('a refusal is the one that docs/guide/errors.md shows', async () => {
    const [shown] = blocksOf(readDocument('docs/guide/errors.md'));
    const query =
      '/api/v1/integration/transactions?statuss=x&from=2026-09-01&to=2026-09-02T00:00:00Z&limit=101';
    const printed = (await answerTo(query)).split('\r\n\r\n')[1] ?? '';
    const id = (text: string): string => text.replace(/"request_id":"[\w-]{36}"/, '');
    expect(id(printed)).toBe(id((shown?.text ?? '').replaceAll('\n', '')));
  });

  it('a month is pulled page by page by the script of docs/pull-api.md', async () => {
    await shell.paste(
      `for id in $(seq 1001 ${1000 + MORE}); do head -1 examples/transactions.jsonl | sed "s/501/$id/"; done |
         fuel transaction import - --wait\n`,
    );
    await shell.paste(
      `export BASE_URL=https://localhost:${api}/api/v1/integration API_KEY=${key} CURL_CA_BUNDLE=data/tls-cert.pem\n`,
    );
    await shell.paste(blockWith(PULL, 'september.jsonl'));
    const pages = readFileSync(join(cwd, 'september.jsonl'), 'utf8').trim().split('\n');
    const ids = pages.flatMap((page) =>
      (JSON.parse(page) as { data: { id: number }[] }).data.map(({ id }) => id),
    );
    expect([pages.length, ids.length, new Set(ids).size]).toEqual([2, MORE + 2, MORE + 2]);
  });

  it('a backup is made and restored by the commands of docs/operations', async () => {
    const section = sectionOf(OPERATIONS, '### The embedded files');
    const place = (text: string): string | undefined => /^transactions +(\d+) +0 s +0/m.exec(text)?.[1];
    const before = place(await shell.paste('fuel projection status\n'));
    expect(before).toBeDefined();
    const made = await shell.paste(withFolders(blockWith(section, 'fuel store backup')));
    expect(made).toMatch(/^Dir +\S+\/backups\/2026-09-03\n(.*\n)*Files +.*events\.db/);
    expect(made).toMatch(/^events\.db: OK$/m);

    await service.end();
    await shell.paste('mv data data.old\n');
    const restore = inlineCodeOf(section).filter((code) => /^cp -a |^FUEL_DATA_DIR=data fuel /.test(code));
    expect(restore.length).toBe(2);
    const printed = await shell.paste(withFolders(`${restore.join('\n')}\n`));
    expect(place(printed)).toBe(before);
    await serve();
    expect(inlineCodeOf(section)).toContain('fuel verify');
    expect(JSON.parse(await shell.paste('fuel verify --json\n'))).toMatchObject({
      view: { checked: MORE + 2, differences: 0 },
      deliveries: { missing: 0, surplus: 0 },
    });
  });
});
