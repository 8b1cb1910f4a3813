import { describe, expect, it } from 'vitest';
import { blocksOf, readDocument, readOperations, sectionOf } from '../support/documents.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { lastingPort } from '../support/lasting-port.ts';
import { clone, Shell } from '../support/shell.ts';

describe.skipIf(onServers)('the README', () => {
  it('has commands that work as written, from the first start to a webhook', async () => {
    const text = readDocument('README.md');
    const steps = sectionOf(readOperations(), '## Try a webhook on one machine');
    const [api, receiver] = [await lastingPort(), await lastingPort()];
    const shellBlocks = (document: string): string[] =>
      blocksOf(document)
        .filter(({ language }) => language === 'sh')
        .map((block) =>
          block.text.replaceAll('127.0.0.1:8443', `127.0.0.1:${api}`).replaceAll(':8444', `:${receiver}`),
        );
    const [start = '', pull = '', check = '', ...furtherBlocks] = shellBlocks(text);
    const [restart = '', push = '', send = '', sync = '', ...furtherSteps] = shellBlocks(steps);
    expect([check, ...furtherBlocks, ...furtherSteps]).toEqual(['npm test\n']);
    const folder = clone();
    const ports = {
      FUEL_LISTEN: `127.0.0.1:${api}`,
      FUEL_OPS_LISTEN: '127.0.0.1:0',
      PORT: String(receiver), // of the example receiver
    };

    let first = new Shell(folder, ports);
    const [install, demo, serve = '', ...furtherLines] = start.trim().split('\n');
    expect([install, demo?.split(' #')[0]?.trim(), furtherLines]).toEqual(['npm ci', 'npm run demo', []]);
    first.start(`${serve}\n`); // the packages are those that this test itself runs with
    await first.shows('"msg":"listening"');
    const second = new Shell(folder, ports);
    const pulled = await second.paste(pull);
    expect(pulled).toContain('recorded 2, unchanged 0, refused 0');
    expect(pulled).toContain('"number_plate":"ABC 123"');

    await first.end();
    first = new Shell(folder, ports);
    first.start(restart);
    await first.shows('"msg":"listening"');
    await second.paste(push);
    expect(steps).toContain('listening on port 8444');
    await second.shows(`listening on port ${receiver}`);
    const sent = await second.paste(send);
    expect(sent).toMatch(/^URL +https:\/\/localhost:\d+\/fuel-events\nOk +yes\nStatus +204\n/m);
    expect(sent).toContain('recorded 1, unchanged 0, refused 0');
    expect(steps).toContain('`transaction.confirmed 503`');
    await second.shows('transaction.confirmed 503 delivery ');
    expect(await second.paste('bin/fuel delivery list\n')).toMatch(/ 503 +transaction\.confirmed/);
    const synced = await second.paste(sync);
    expect(synced).toContain('3 transactions pulled: 2 new, 0 changed, 0 removed; fuel.db holds 3');
    expect(synced).toContain('"number_plate":"XYZ 9"');
  });

  it('has a demo that shows what it says, and ends automatically with --once', async () => {
    expect(readDocument('README.md')).toContain('`npm run demo -- --once` ends by itself');
    const shell = new Shell(clone());
    const shown = await shell.paste('npm run demo -- --once\n');
    expect(shown).toMatch(/opened account 7, .*\nopened account 8, /);
    expect(shown).toMatch(/imported \S+ in [\d.]+ s: 2\d{4} events recorded, 0 refused/);
    expect(shown).toMatch(/curl --cacert \S+ -H 'X-API-Key: svc_test_/);
    expect(shown).toMatch(/pulled the last 31 days over HTTPS: \d+ pages/);
    expect(shown).toMatch(
      /attempt 1: answered 204 .*\n(.*\n)+.*attempt 1: answered 503 .*\n.*attempt 2: answered 204 /,
    );
  });
});
