import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { folder, fuel } from '../support/service/commands.ts';

const KEY = /^svc_test_([a-z0-9]{10})_[A-Za-z0-9]{43}$/;

describe('fuel key', () => {
  const dataDir = join(folder(), 'data');
  const run = (...args: string[]) => fuel(['key', ...args], { dataDir });
  let prefix = '';

  beforeAll(async () => {
    await fuel(['account', 'open', '7', '--name', 'Seven'], { dataDir });
  });

  it('issues a key that is shown once and stored nowhere', async () => {
    const { code, json, stderr } = await run('issue', '7', '--label', 'ERP', '--json');
    expect([code, stderr]).toEqual([0, '']);
    expect(json).toMatchObject({ key: expect.stringMatching(KEY), webhook_secret: null });
    prefix = json.prefix;
    expect(KEY.exec(json.key)?.[1]).toBe(prefix);
    const outputs = await Promise.all([
      run('list', '--json'),
      run('list', '--edge', '--json'),
      run('show', prefix, '--json'),
      fuel(['account', 'show', '7', '--json'], { dataDir }),
      fuel(['audit', '--json'], { dataDir }),
    ]);
    for (const { code: each, stdout } of outputs) {
      expect(each).toBe(0);
      expect(stdout).toContain(prefix);
      expect(stdout).not.toContain(json.key.slice(-43));
    }
    expect(outputs[2].stdout).not.toMatch(/[0-9a-f]{64}/);
  });

  it('issues a key with everything at once, its webhook secret shown only once', async () => {
    const url = 'https://hooks.example.com/fuel';
    const { code, json } = await run(
      ...['issue', '7', '--json', '--allow', '203.0.113.0/24,2001:db8::7', '--rate-limit', '300'],
      ...['--driver-mobile', '--webhook-url', url],
    );
    expect(code).toBe(0);
    expect(json.webhook_secret).toMatch(/^[A-Za-z0-9]{43}$/);
    expect((await run('show', json.prefix, '--json')).json).toMatchObject({
      prefix: json.prefix,
      allow_list: ['203.0.113.0/24', '2001:db8::7'],
      rate_limit: 300,
      driver_mobile: true,
      active: true,
    });
    const { stdout } = await fuel(['audit', '--json', '--type', 'WebhookUrlSet'], { dataDir });
    expect(stdout).toContain(url);
    expect(stdout).not.toContain(json.webhook_secret);
  });

  it.each([
    'http://example.com/',
    'https://127.0.0.1/',
    'https://user:pw@example.com/',
    'https://example.com:8443/',
  ])('refuses the webhook URL %s, and issues no key then', async (url) => {
    const before = (await run('list', '--json')).lines.length;
    const { code, stdout } = await run('issue', '7', '--webhook-url', url);
    expect([code === 1 || code === 2, stdout]).toEqual([true, '']);
    expect((await run('list', '--json')).lines).toHaveLength(before);
  });

  it('changes a key step by step', async () => {
    for (const args of [
      ['off', prefix],
      ['rate-limit', prefix, '120'],
      ['driver-mobile', prefix, 'on'],
      ['allow', prefix, '198.51.100.7'],
    ]) {
      expect((await run(...args)).code).toBe(0);
    }
    const changed = { active: false, rate_limit: 120, driver_mobile: true, allow_list: ['198.51.100.7'] };
    expect((await run('show', prefix, '--json')).json).toMatchObject(changed);
    expect((await run('list', '--edge', '--json')).lines).toContainEqual({
      prefix,
      environment: 'staging',
      allow_list: ['198.51.100.7'],
      rate_limit: 120,
      active: false,
    });
    expect((await run('on', prefix)).code).toBe(0);
  });

  it('lists the keys of one account', async () => {
    await fuel(['account', 'open', '8', '--name', 'Eight'], { dataDir });
    const { json } = await run('issue', '8', '--json');
    const { lines } = await run('list', '--account', '8', '--json');
    expect(lines.map((line) => line.prefix)).toEqual([json.prefix]);
    expect((await run('list', '--json')).lines).toHaveLength(3);
  });

  it('reports that no service runs, and is done', async () => {
    const { code, json, stderr } = await run('rate-limit', prefix, '60', '--json', '--wait');
    expect([code, json.rate_limit]).toEqual([0, 60]);
    expect(stderr).toMatch(/no (service|process)/i);
  });

  it.each([
    [1, ['issue', '99']],
    [1, ['show', 'zzzzzzzzzz']],
    [1, ['off', 'zzzzzzzzzz']],
    [2, ['issue']],
    [2, ['issue', '7', '--rate-limit', '0']],
    [2, ['issue', '7', '--rate-limit', 'many']],
    [2, ['issue', '7', '--allow', '203.0.113.0/33']],
    [2, ['issue', '7', '--allow', '203.0.113.1,localhost']],
    [2, ['driver-mobile', 'zzzzzzzzzz', 'yes']],
    [2, ['rate-limit', 'zzzzzzzzzz', '-1']],
    [2, ['list', '--account', 'x']],
  ])('ends with %i for: key %j', async (exit, args) => {
    const { code, stdout, stderr } = await run(...args);
    expect([code, stdout]).toEqual([exit, '']);
    expect(stderr).toMatch(/\w{3,}/);
    expect(stderr).not.toMatch(/\n\s+at /);
  });
});
