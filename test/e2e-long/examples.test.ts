import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Ledger } from '../../examples/ledger/ledger.ts';
import { changeAccount } from '../../src/accounts/change-account.ts';
import { generateTransactions } from '../../src/customers/sample/generator.ts';
import { Random } from '../../src/customers/sample/random.ts';
import { webhookOptions } from '../../src/operator/cli/commands/webhook-commands.ts';
import { issueKey } from '../../src/operator/keys/issue-key.ts';
import { makeCertificate } from '../support/certificate.ts';
import { countByState } from '../support/deliveries/listed.ts';
import { onServers } from '../support/engines/test-engines.ts';
import { lastingPort } from '../support/lasting-port.ts';
import { folder } from '../support/service/commands.ts';
import { openForUse } from '../support/service/operator.ts';
import { ServiceProcess } from '../support/service/service-process.ts';
import { linesOf, voided } from '../support/transactions/e2e-samples.ts';
import { PATIENCE_MS, until, within } from '../support/waiting.ts';

const ACCOUNT = 7;
const DAYS = 31;
const DAY_MS = 86_400_000;
const COUNT = 3_000;
const PARTS = 12;
/** Longer than the webhooks of the month take on a busy machine. */
const DELIVERED_MS = 300_000;
const SEED = Math.floor(Math.random() * 2 ** 31);

const EXAMPLES = join(import.meta.dirname, '../../examples');

/** An example in a separate process, which is killed when the test is over. */
class ExampleProcess {
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  output = '';

  /** `env` is its whole environment besides PATH. */
  constructor(file: string, env: Readonly<Record<string, string>>) {
    this.#child = spawn(process.execPath, [join(EXAMPLES, file)], {
      env: { PATH: process.env.PATH ?? '', ...env },
    });
    this.#ended = once(this.#child, 'close');
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
      });
    }
    onTestFinished(() => this.kill());
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  async shows(text: string): Promise<void> {
    await until(() => this.output.includes(text));
  }

  /** Resolves with everything that it printed, once it has ended. Throws if it failed. */
  async finished(): Promise<string> {
    await within(this.#ended, PATIENCE_MS, () => `it did not end\n${this.output}`);
    if (this.#child.exitCode !== 0) throw new Error(`it ended with ${this.#child.exitCode}\n${this.output}`);
    return this.output;
  }
}

describe.skipIf(onServers)('a month of both channels, with the examples killed again and again', () => {
  it('ends with the same ledger in both, exactly what the service shows', async () => {
    const random = new Random(SEED);
    const [cwd, port] = [folder(), await lastingPort()];
    const { cert, key } = await makeCertificate();
    const [certFile, keyFile] = [join(cwd, 'cert.pem'), join(cwd, 'key.pem')];
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
    const service = await new ServiceProcess({
      env: {
        FUEL_WEBHOOK_ALLOW_PRIVATE: 'true',
        FUEL_WEBHOOK_CA: certFile,
        FUEL_WEBHOOK_RETRY_DELAYS: '1s,8s', // longer than a receiver takes to restart
      },
    }).start();
    const endMs = Date.now();
    const startMs = endMs - DAYS * DAY_MS;
    const url = `https://localhost:${port}/fuel-events`;
    const issued = await issueLongAgo(service, url, startMs - 1);
    const [pulledFile, pushedFile] = [join(cwd, 'pulled.db'), join(cwd, 'pushed.db')];
    const receiver = () =>
      new ExampleProcess('receiver/receiver.ts', {
        WEBHOOK_SECRET: issued.webhookSecret ?? '',
        TLS_CERT: certFile,
        TLS_KEY: keyFile,
        PORT: `${port}`,
        DATABASE: pushedFile,
      });
    const syncClient = (file: string, fromMs = startMs) =>
      new ExampleProcess('sync-client/sync-client.ts', {
        BASE_URL: service.url,
        API_KEY: issued.key,
        FROM: new Date(fromMs).toISOString(),
        NODE_EXTRA_CA_CERTS: join(service.dataDir, 'tls-cert.pem'),
        DATABASE: file,
        OVERLAP_DAYS: `${DAYS + 1}`, // the whole range, each time
      });

    const events = [
      ...generateTransactions({ seed: SEED, count: COUNT, days: DAYS, endMs, accountIds: [ACCOUNT] }),
    ];
    let running = receiver();
    await running.shows('listening');
    for (let part = 0; part < PARTS; part++) {
      const lines = linesOf(
        events.slice((part * events.length) / PARTS, ((part + 1) * events.length) / PARTS),
      );
      const client = syncClient(pulledFile, startMs - part * DAY_MS); // it starts earlier each time, so all windows are pulled again
      const imported = service.operator.import(lines, { wait: true });
      await sleep(random.between([0, 700]));
      await running.kill();
      await sleep(random.between([0, 400]));
      await client.kill();
      running = receiver();
      await imported;
    }
    await syncClient(pulledFile).finished();

    await running.shows('listening');
    await service.operator.with(async (engines) => {
      await until(
        async () => (await countByState(engines.queue(), { accountId: ACCOUNT })).pending === 0,
        DELIVERED_MS,
      );
    });
    await service.done(['delivery', 'redeliver', '--failed', '--key', issued.prefix]);
    await service.operator.with(async (engines) => {
      await until(async () => {
        const { pending, failed } = await countByState(engines.queue(), { accountId: ACCOUNT });
        return pending === 0 && failed === 0;
      });
    });

    const visible = visibleAfter(events);
    const shown = recordsOf(pulledFile);
    expect(idsOf(shown), `seed ${SEED}`).toEqual(visible);
    const isVisible = (text: string): boolean => visible.has(JSON.parse(text).id);
    const pushed = recordsOf(pushedFile);
    expect(pushed.filter(isVisible), `seed ${SEED}`).toEqual(shown);
    // A transaction pushed just before its void stays for ten minutes, since a pull may be behind the webhooks.
    const voidedLate = pushed.filter((text) => !isVisible(text));
    const completed = (file: string, kept: readonly string[]): string[] => {
      const records = recordsOf(file);
      expect(
        records.filter((text) => !isVisible(text)),
        `seed ${SEED}`,
      ).toEqual(kept);
      return records.filter(isVisible);
    };

    // A sync, which is killed between its pages, makes the pushed ledger complete.
    for (let times = 1; times <= 5; times++) {
      const client = syncClient(pushedFile);
      await client.shows(`page ${random.between([1, 3])},`);
      await client.kill();
    }
    expect(await syncClient(pushedFile).finished()).toMatch(/^continuing an interrupted sync\n/);
    expect(completed(pushedFile, voidedLate), `seed ${SEED}`).toEqual(shown);

    const late = [...visible].filter(() => random.chance(0.02));
    expect(late.length).toBeGreaterThan(10);
    await service.operator.import(linesOf(late.map((id) => voided(id))), { wait: true });
    for (const [file, kept] of [
      [pulledFile, []],
      [pushedFile, voidedLate],
    ] as const) {
      expect(await syncClient(file).finished()).toContain(` 0 new, 0 changed, ${late.length} removed; `);
      expect(completed(file, kept)).toEqual(shown.filter((text) => !late.includes(JSON.parse(text).id)));
    }
  }, 900_000);
});

function recordsOf(file: string): string[] {
  const ledger = new Ledger(file);
  const records = [...ledger.records()];
  ledger.close();
  return records;
}

const idsOf = (records: readonly string[]): Set<number> =>
  new Set(records.map((text) => JSON.parse(text).id));

function visibleAfter(events: Iterable<{ type: string; data: { transaction_id: number } }>): Set<number> {
  const ids = new Set<number>();
  for (const { type, data } of events) {
    if (type === 'TransactionVoided' || type === 'TransactionCancelled') ids.delete(data.transaction_id);
    else ids.add(data.transaction_id);
  }
  return ids;
}

/** Issues a key whose webhook was set before the month began, so that it is owed the whole month. */
async function issueLongAgo({ operator }: ServiceProcess, url: string, atMs: number) {
  return operator.with(async (engines) => {
    const clock = { now: () => atMs };
    const writer = { store: engines.store(), clock, author: { actor: 'test', command: 'test' } };
    await changeAccount(writer, ACCOUNT, openForUse(ACCOUNT));
    return issueKey(writer, {
      accountId: ACCOUNT,
      environment: 'staging',
      label: null,
      allowList: [],
      rateLimit: 100_000,
      driverMobile: true,
      webhook: webhookOptions(operator.config, url),
    });
  });
}
