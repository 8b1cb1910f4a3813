import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { keyIssued, opened, PREFIX, webhookSet } from '../../support/accounts/account-samples.ts';
import { claimOf, claimOptions, newDelivery } from '../../support/deliveries/deliveries.ts';
import { commandLine, sharedCommandLine } from '../../support/service/command-line.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const BIN = fileURLToPath(new URL('../../../bin/fuel', import.meta.url));
const SECRET = `${'Secret'.repeat(7)}x`;
const WHOLE_KEY = `svc_test_${PREFIX}_${SECRET}`;
/** Clears the screen, by C0 and by C1, and turns the direction of text. */
const STEERING = '\u001b[2J\u009b2J\u007f\u202e\u2066\r\n';
const ESCAPED = '\\u001b[2J\\u009b2J\\u007f\\u202e\\u2066\\u000d\\u000a';
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be printed
const STEERS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

describe('what steers a terminal is escaped', () => {
  test('in names, for people and in JSON', async () => {
    const { fuel } = commandLine();
    await fuel('account', 'open', '7', '--name', `Nord${STEERING}haul`, '--actor', `Ada${STEERING}`);
    const list = await fuel('account', 'list');
    expect(list.stdout).toContain(`Nord${ESCAPED}haul`);
    for (const args of [['account', 'list'], ['account', 'show', '7'], ['audit']]) {
      for (const json of [[], ['--json']]) {
        const { stdout } = await fuel(...args, ...json);
        expect(stdout).toContain('Nord');
        expect(stdout).not.toMatch(STEERS);
      }
    }
    expect((await fuel('account', 'show', '7', '--json')).json.name).toBe(`Nord${STEERING}haul`);
    const { stdout } = await fuel('audit', '--account', '7');
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
  });

  test('in what a receiver answered, also if that has several lines', async () => {
    const { fuel, account, withEngines } = commandLine();
    await account(opened(), keyIssued(), webhookSet());
    const id = await withEngines(async (engines) => {
      const [claim] = await engines
        .queue()
        .enqueue([newDelivery(1, { prefix: PREFIX })], claimOptions(1_000));
      if (claim === undefined) throw new Error('nothing was claimed');
      const answer = {
        status: 500,
        headers: { 'x-y': `v${STEERING}` },
        body: `no${STEERING}fuel: all is well`,
      };
      await engines.queue().report([
        {
          kind: 'failed',
          ...claimOf(claim),
          reason: `because${STEERING}`,
          attempt: {
            cycle: 1,
            number: 1,
            startedAtMs: 1_000,
            durationMs: 3,
            othersUnderWay: 0,
            outcome: { ok: false, kind: 'cut', detail: `reset${STEERING}`, answer },
          },
        },
      ] as unknown as Parameters<ReturnType<typeof engines.queue>['report']>[0]);
      return claim.id;
    });
    const { stdout } = await fuel('delivery', 'show', id);
    expect(stdout).toContain(`no${ESCAPED}fuel: all is well`);
    for (const args of [[], ['--json']]) {
      expect((await fuel('delivery', 'show', id, ...args)).stdout).not.toMatch(STEERS);
      expect((await fuel('delivery', 'list', ...args)).stdout).not.toMatch(STEERS);
    }
    const shown = (await fuel('delivery', 'show', id, '--json')).json;
    expect(shown.attempts[0].body).toBe(`no${STEERING}fuel: all is well`);
  });

  test('in the faults of an import, in arguments and in errors', async () => {
    const { fuel, file } = commandLine();
    const path = file(
      'lines',
      `{"type":"x\u009b\u202e"}\n${'\u009b\u001b'}\n{"type":"TransactionVoided","a\u202e":1}\n`,
    );
    const results = [
      await fuel('transaction', 'import', path),
      await fuel('account', 'show', `7${STEERING}`),
      await fuel('serve', '--role', `cook${STEERING}`),
      await fuel(`accounts${STEERING}`),
      await fuel('verify', `all${STEERING}`),
      await fuel('delivery', 'show', STEERING),
    ];
    for (const { code, stderr } of results) {
      expect(code).not.toBe(0);
      expect(stderr).not.toMatch(STEERS);
    }
    expect(results[0]?.stderr).toContain('\\u009b');
  });
});

describe('a whole key in place of a prefix', () => {
  const { fuel } = sharedCommandLine(async () => undefined);

  test.each([
    ['key', 'show', WHOLE_KEY],
    ['key', 'off', WHOLE_KEY],
    ['key', 'on', WHOLE_KEY],
    ['key', 'allow', WHOLE_KEY, '203.0.113.7'],
    ['key', 'rate-limit', WHOLE_KEY, '7'],
    ['key', 'driver-mobile', WHOLE_KEY, 'on'],
    ['webhook', 'set', WHOLE_KEY, 'https://example.com/'],
    ['webhook', 'show', WHOLE_KEY],
    ['webhook', 'test', WHOLE_KEY],
    ['webhook', 'remove', WHOLE_KEY],
    ['webhook', 'enable', WHOLE_KEY],
    ['webhook', 'disable', WHOLE_KEY],
    ['delivery', 'list', '--key', WHOLE_KEY],
    ['delivery', 'redeliver', '--failed', '--key', WHOLE_KEY],
    ['key', 'show', SECRET],
  ])('is wrong usage of fuel %s %s, and is not repeated', async (...args) => {
    const { code, stdout, stderr } = await fuel(...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain("must be a key's prefix, the 10 characters after svc_live_ or svc_test_");
    expect(stderr).not.toContain(SECRET);
  });

  test('is not repeated where no key belongs either', async () => {
    for (const args of [
      ['key', WHOLE_KEY],
      ['account', 'show', WHOLE_KEY],
      ['key', 'list', '--account', WHOLE_KEY],
    ]) {
      const { code, stderr } = await fuel(...args);
      expect([code, stderr.includes(SECRET)]).toEqual([2, false]);
    }
  });
});

describe('a secret that can’t be written', () => {
  /** Runs a command whose standard output is this; its exit code and standard error. */
  async function run(dataDir: string, args: readonly string[], output: 'pipe' | number) {
    const child = spawn(BIN, args, {
      env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', FUEL_DATA_DIR: dataDir },
      stdio: ['ignore', output, 'pipe'],
    });
    child.stdout?.destroy();
    let stderr = '';
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    const [code] = await once(child, 'close');
    return { code, stderr };
  }

  test.each(['a closed pipe', 'a full disk'])(
    'to %s is reported as lost, with what to do, and exit 1',
    async (where) => {
      const dataDir = join(temporaryFolder(), 'data');
      const full = openSync('/dev/full', 'w');
      const output = where === 'a full disk' ? full : 'pipe';
      await run(dataDir, ['account', 'open', '7', '--name', 'x'], 'pipe');
      const issued = await run(dataDir, ['key', 'issue', '7'], output);
      expect(issued.code).toBe(1);
      const prefix =
        /The key ([a-z0-9]{10}) was issued, but could not be written/.exec(issued.stderr)?.[1] ?? '';
      expect(issued.stderr).toContain(
        `is lost. Switch it off (\`fuel key off ${prefix}\`) and issue another`,
      );
      expect(issued.stderr).not.toContain('unexpected');
      const set = await run(
        dataDir,
        ['webhook', 'set', prefix, 'https://192.0.2.1.example.invalid/'],
        output,
      );
      expect(set).toEqual({ code: 1, stderr: expect.stringContaining(`fuel key off ${prefix}`) });
      closeSync(full);
    },
  );

  test.each([['account', 'list'], ['account', 'export'], ['account', 'show', '7', '--json'], ['--help']])(
    'to a full disk ends any other command with one line too: fuel %s %s',
    async (...args) => {
      const dataDir = join(temporaryFolder(), 'data');
      await run(dataDir, ['account', 'open', '7', '--name', 'x'], 'pipe');
      const full = openSync('/dev/full', 'w');
      const { code, stderr } = await run(dataDir, args, full);
      closeSync(full);
      expect(code).toBe(1);
      expect(stderr).toMatch(/^fuel: Standard output cannot be written\. .*ENOSPC.*\n$/);
    },
  );

  test('is no reason to fail where what is cut short holds none', async () => {
    const dataDir = join(temporaryFolder(), 'data');
    await run(dataDir, ['account', 'open', '7', '--name', 'x'], 'pipe');
    expect(await run(dataDir, ['account', 'list'], 'pipe')).toEqual({ code: 0, stderr: '' });
  });
});

test('a command that can’t say what is wrong ends with the exit code that says it', async () => {
  const full = openSync('/dev/full', 'w');
  const child = spawn(BIN, ['nowhere'], { stdio: ['ignore', 'ignore', full] });
  closeSync(full);
  expect(await once(child, 'close')).toEqual([2, null]);
});
