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
});
