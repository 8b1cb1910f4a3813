import { describe, expect, it } from 'vitest';
import { blocksOf, readDocument } from '../support/documents.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { lastingPort } from '../support/lasting-port.ts';
import { clone, Shell } from '../support/shell.ts';

const page = (name: string): string => readDocument(`docs/guide/${name}`);
const commandsOf = (name: string): string[] =>
  blocksOf(page(name))
    .filter(({ language }) => language === 'sh')
    .map(({ text }) => text);
const jsonOf = (name: string): string =>
  blocksOf(page(name)).find(({ language }) => language === 'json')?.text ?? '';

describe.skipIf(onServers)('the guide', () => {
  it('leads a new customer from nothing to both channels by its commands as they are written', async () => {
    const folder = clone();
    const [api, receiver] = [await lastingPort(), await lastingPort()];
    const [start = '', pull = '', ...furtherPulls] = commandsOf('first-pull.md');
    const [sync = '', voidAndSync = '', ...furtherSyncs] = commandsOf('sync.md');
    const [receive = '', send = '', ...furtherSends] = commandsOf('receiving.md');
    const [both = '', month = '', ...furtherBoth] = commandsOf('reconciling.md');
    const [verify = '', ...furtherVerify] = commandsOf('verify/README.md');
    expect([furtherPulls, furtherSyncs, furtherSends, furtherBoth, furtherVerify].flat()).toEqual([]);

    const first = new Shell(folder);
    expect(start).toBe('npm ci\nbin/fuel mock\n'); // done: the packages; another port, since tests share the machine
    first.start(`bin/fuel mock --port ${api}\n`);
    await first.shows('Ctrl-C ends it');
    const second = new Shell(folder, { PORT: String(receiver) });
    await second.paste(first.output); // the export lines, and comments

    const pulled = await second.paste(pull);
    const ids = (text: string): string[] =>
      [...text.matchAll(/\{"id":(\d+),"status"|\{"id":(\d+), …/g)].map(([, a, b]) => a ?? b ?? '');
    expect(ids(pulled)).toEqual(ids(jsonOf('first-pull.md')));
    expect(pulled).toContain('"pagination":{"limit":2,"has_more":true,"next_cursor":"AQAAAa');

    expect(await second.paste(sync)).toMatch(
      /\n(\d+) transactions pulled: \1 new, 0 changed, 0 removed; fuel\.db holds \1\n/,
    );
    expect(page('sync.md')).toContain('`0 new, 0 changed, 1 removed`');
    expect(await second.paste(voidAndSync)).toContain('0 new, 0 changed, 1 removed');

    await second.paste(receive);
    expect(page('receiving.md')).toContain('`listening on port 8444`');
    await second.shows(`listening on port ${receiver}`);
    const own = (text: string): string => text.replaceAll(':8444', `:${receiver}`);
    const sent = await second.paste(own(send));
    expect(sent.match(/"as_expected":true/g)?.length).toBe(12);
    expect(sent).not.toContain('"as_expected":false');
    for (const [kind, times] of [
      ['204', 9],
      ['401', 3],
    ] as const) {
      expect(sent.match(new RegExp(`"status":${kind},`, 'g'))?.length).toBe(times);
    }
    const members = (text: string): string[] => [...text.matchAll(/"(\w+)":/g)].map(([, name = '']) => name);
    expect(members(sent)).toEqual(expect.arrayContaining(members(jsonOf('receiving.md'))));

    const reconciled = await second.paste(own(both));
    const [, holds = '', lines = ''] = /fuel\.db holds (\d+)\n\s*(\d+)\n/.exec(reconciled) ?? [];
    expect(Number(holds)).toBeGreaterThan(1_900);
    expect(lines).toBe(holds);
    expect(await second.paste(month)).toMatch(/^created_at [^}]*transactions: \d/);

    expect(await second.paste(verify)).toContain('genuine\n');
  });
});
