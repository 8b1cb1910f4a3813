import { type AccountWriter, changeAccount } from '../../../src/accounts/change-account.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { Config } from '../../../src/base/config/config.ts';
import type { AccountCommand } from '../../../src/domain/account-commands.ts';
import { loadConfig, openEngines } from '../../../src/engines/engines.ts';
import { webhookOptions } from '../../../src/operator/cli/commands/webhook-commands.ts';
import { importTransactions } from '../../../src/operator/import/import-transactions.ts';
import { type IssuedKey, issueKey } from '../../../src/operator/keys/issue-key.ts';
import { setWebhook, type WebhookSet } from '../../../src/operator/keys/set-webhook.ts';
import type { LineCounts } from '../../../src/operator/lines/record-lines.ts';
import { waitUntilApplied } from '../../../src/operator/serve/wait-applied.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import type { Env } from './commands.ts';

const AUTHOR = { actor: 'test', command: 'test' };

export interface KeyWishes {
  readonly rateLimit?: number;
  readonly allowList?: readonly string[];
  readonly driverMobile?: boolean;
  readonly webhookUrl?: string;
}

/**
 * Does the work of an operator's commands in this process, with the functions that the commands call. It is for steps
 * that a test needs but does not test. Each call opens the stores and closes them.
 */
export class Operator {
  readonly config: Config;

  /** `env` is the environment of the service, including its data directory. */
  constructor(env: Env) {
    this.config = loadConfig(env, 'command');
  }

  async with<T>(work: (engines: Engines) => Promise<T>): Promise<T> {
    const engines = await openEngines(this.config, systemClock);
    try {
      return await work(engines);
    } finally {
      await engines.close();
    }
  }

  /** Carries out the commands on the account. Resolves once every process has applied them. */
  async change(accountId: number, ...commands: readonly AccountCommand[]): Promise<void> {
    await this.with(async (engines) => {
      await changeAccount(writerOf(engines), accountId, commands);
      await applied(engines);
    });
  }

  /** Sets the webhook URL of a key. Resolves once every process has applied it. */
  async setWebhook(
    { accountId, prefix }: { readonly accountId: number; readonly prefix: string },
    url: string,
  ): Promise<WebhookSet> {
    return this.with(async (engines) => {
      const options = webhookOptions(this.config, url);
      const set = await setWebhook(writerOf(engines), { accountId, prefix }, options);
      await applied(engines);
      return set;
    });
  }

  /** Carries out the commands on the account and issues a key. Resolves once every process knows the key. */
  async provision(
    accountId: number,
    commands: readonly AccountCommand[],
    { rateLimit = 100_000, allowList = [], driverMobile = false, webhookUrl }: KeyWishes = {},
  ): Promise<IssuedKey> {
    const { config } = this;
    const webhook = webhookUrl === undefined ? null : webhookOptions(config, webhookUrl);
    return this.with(async (engines) => {
      const writer = writerOf(engines);
      await changeAccount(writer, accountId, commands);
      const environment = config.FUEL_ENVIRONMENT;
      const wished = { accountId, environment, label: null, allowList, rateLimit, driverMobile, webhook };
      const issued = await issueKey(writer, wished);
      await applied(engines);
      return issued;
    });
  }

  /** Imports lines of events. Throws if one is refused. */
  async import(text: string, { wait }: { readonly wait: boolean }): Promise<LineCounts> {
    return this.with(async (engines) => {
      const counts = await importTransactions({
        store: engines.store(),
        input: chunksOf(text),
        author: AUTHOR,
        clock: systemClock,
        onRefused: (lineNumber, reason) => {
          throw new Error(`line ${lineNumber} is refused: ${reason}`);
        },
        onProgress: () => undefined,
        signal: new AbortController().signal,
      });
      if (wait) await applied(engines);
      return counts;
    });
  }
}

function writerOf(engines: Engines): AccountWriter {
  return { store: engines.store(), clock: systemClock, author: AUTHOR };
}

/** Waits until every process has applied everything, like `--wait`. */
async function applied(engines: Engines): Promise<void> {
  const position = await engines.store().head();
  const coordination = engines.coordination();
  await waitUntilApplied({ coordination, view: engines.view(), accounts: engines.accounts(), position });
}

async function* chunksOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}

/** The commands that open an account for use. */
export function openForUse(accountId: number): AccountCommand[] {
  return [
    { type: 'OpenAccount', accountId, name: `Customer ${accountId}` },
    { type: 'EnableIntegration', accountId },
    { type: 'SetChargingProfile', accountId, profile: 'basic', fromMs: 0, toMs: null },
  ];
}
