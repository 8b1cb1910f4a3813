import { hostname } from 'node:os';
import { beforeAll, describe, expect, it } from 'vitest';
import { PushService } from '../support/deliveries/push-service.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { openAccount } from '../support/transactions/e2e-samples.ts';

describe('a webhook URL', () => {
  const operator = new ServiceProcess();
  let prefix = '';
  const set = (url: string) => operator.fuel(['webhook', 'set', prefix, url, '--json']);

  beforeAll(async () => {
    ({ prefix } = await openAccount(operator));
  });

  it('is refused with the reason, in any spelling, if it leads into the service’s network', async () => {
    const urls = [
      'https://localhost/hook',
      'https://0x7f000001/',
      'https://2130706433/',
      'https://10.1.2.3/',
      'https://100.64.0.1/',
      'https://169.254.169.254/latest/meta-data/',
      'https://[::1]/',
      'https://[::ffff:7f00:1]/',
      'https://[fe80::1]/',
      'https://[64:ff9b::7f00:1]/',
      'https://%6c%6f%63%61%6c%68%6f%73%74/',
    ];
    const results = await Promise.all(urls.map(set));
    const accepted = urls.filter((_, index) => results[index]?.code !== 1);
    expect(accepted).toEqual([]);
    for (const { stdout, stderr } of results) {
      expect(stdout).toBe('');
      expect(stderr).not.toMatch(/\n\s+at /);
    }
    expect((await operator.done(['webhook', 'show', prefix, '--json'])).json.state).toBe('none');
  });

  it('is refused where it is not https on port 443 without user, password or fragment', async () => {
    const urls = [
      'http://example.com/hook',
      'https://example.com:8443/hook',
      'https://user:pass@example.com/hook',
      'https://example.com/hook#part',
      'example.com/hook',
      '',
    ];
    const results = await Promise.all(urls.map(set));
    expect(urls.filter((_, index) => ![1, 2].includes(results[index]?.code ?? 0))).toEqual([]);
    const issue = await operator.fuel(['key', 'issue', '7', '--webhook-url', 'https://10.0.0.1/', '--json']);
    expect(issue.code).toBe(1);
    expect((await operator.done(['key', 'list', '--json'])).lines).toHaveLength(1);
  });

  it('is accepted with a warning where its name does not resolve', async () => {
    const { code, json, stderr } = await set('https://no-such-host.invalid/hook');
    expect([code, json.webhook_secret]).toEqual([0, expect.stringMatching(/^[A-Za-z0-9]{43}$/)]);
    expect(stderr).toMatch(/resolve/);
    expect(json.url).toBe('https://no-such-host.invalid/hook');
  });
});

describe('an address that was permitted once', () => {
  it('is judged again at each attempt, by what it then resolves to', async () => {
    const push = await PushService.start();
    const byName = await push.customer(1);
    const byAddress = await push.customer(2);
    const local = push.receiver.url(byAddress.path).replace('localhost', '127.0.0.1');
    await push.service.done(['webhook', 'set', byAddress.prefix, local]);
    await push.service.done(['webhook', 'set', byName.prefix, `https://${hostname()}.localhost/hook`]);
    await push.service.stop();
    await push.service.start({ FUEL_WEBHOOK_ALLOW_PRIVATE: 'false' });
    await push.record([...push.made(1, 1), ...push.made(2, 1)]);
    for (const { account, prefix } of [byName, byAddress]) {
      await push.settled(account, 'failed');
      const [line] = await push.list('--key', prefix);
      const { attempts } = await push.show(line.id);
      expect(attempts.map(({ error }: { error: { kind: string } }) => error.kind)).toEqual(
        Array.from({ length: 3 }, () => 'forbidden'),
      );
    }
    expect(push.receiver.hooks).toEqual([]);
  });
});
