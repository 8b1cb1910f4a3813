import { changeAccount } from '../../../src/accounts/change-account.ts';
import { openMasterKeys } from '../../../src/accounts/master-key.ts';
import { systemClock } from '../../../src/base/clock.ts';
import type { Config } from '../../../src/base/config/config.ts';
import { FuelError } from '../../../src/base/errors.ts';
import type { Log } from '../../../src/base/log.ts';
import type { AccountCommand } from '../../../src/domain/account-commands.ts';
import { storeIdentity } from '../../../src/event-store/store-identity.ts';
import { redeliverByIds, redeliverOfKey } from '../../../src/operator/deliveries/redeliver.ts';
import { eraseTransaction } from '../../../src/operator/erase/erase-transaction.ts';
import { importTransactions } from '../../../src/operator/import/import-transactions.ts';
import { type IssuedKey, issueKey } from '../../../src/operator/keys/issue-key.ts';
import { setWebhook } from '../../../src/operator/keys/set-webhook.ts';
import { waitUntilApplied } from '../../../src/operator/serve/wait-applied.ts';
import { verifyLastDays } from '../../../src/operator/verify/verify-last-days.ts';
import { rebuildTransactions } from '../../../src/pull/view/build/rebuild.ts';
import { createNameLookup } from '../../../src/push/sender/name-lookup.ts';
import { resolveName } from '../../../src/push/targets/resolve-name.ts';
import { openSigner } from '../../../src/seals/seal-key.ts';
import { type LogVerification, verifyLog } from '../../../src/seals/verify-log.ts';
import type { Engines } from '../../../src/service/engines/engines.ts';
import { type Owner, owners } from '../core/timeline.ts';
import { type Gate, openStores, type Stores } from '../stores/stores.ts';

const AUTHOR = { actor: 'operator', command: 'simulation' };

/** How a command ended. After `killed` nobody knows how much of it is done. */
export type Outcome<T> =
  | { readonly kind: 'done'; readonly value: T }
  | { readonly kind: 'refused' | 'unavailable'; readonly reason: string }
  | { readonly kind: 'killed' };

interface OperatorOptions {
  readonly config: Config;
  readonly stores: Stores;
  readonly gate: (owner: Owner) => Gate;
  readonly log: Log;
  readonly onFault: (what: string, error: unknown) => void;
}

class Command implements Owner {
  readonly name: string;
  readonly isService = false;
  isAlive = true;
  pausedUntilMs = 0;
  clockMs = 0;
  readonly killed = Promise.withResolvers<{ readonly kind: 'killed' }>();
  readonly onKilled: (() => void)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  kill(): void {
    this.isAlive = false;
    for (const each of this.onKilled) each();
    this.killed.resolve({ kind: 'killed' });
  }
}

/** The work of an operator. Each command is a separate process, which can end at any of its steps. */
export class Operator {
  readonly #options: OperatorOptions;
  #commands = 0;

  constructor(options: OperatorOptions) {
    this.#options = options;
  }

  change(accountId: number, commands: readonly AccountCommand[], wait = false): Promise<Outcome<void>> {
    return this.#run(async (engines) => {
      await changeAccount(writerOf(engines), accountId, commands);
      if (wait) await this.#applied(engines);
    });
  }

  issue(
    accountId: number,
    terms: { driverMobile: boolean; rateLimit: number },
    url?: string,
  ): Promise<Outcome<IssuedKey>> {
    return this.#run((engines) => {
      const webhook = url === undefined ? null : this.#webhook(url);
      const wished = {
        accountId,
        environment: 'staging',
        label: null,
        allowList: [],
        webhook,
        ...terms,
      } as const;
      return issueKey(writerOf(engines), wished);
    });
  }

  setWebhook(accountId: number, prefix: string, url: string): Promise<Outcome<string | null>> {
    return this.#run(async (engines) => {
      const set = await setWebhook(writerOf(engines), { accountId, prefix }, this.#webhook(url));
      return set.webhookSecret;
    });
  }

  /** Imports lines. `wait`: until every process shows them. Returns true if there was a process. */
  import(lines: readonly object[], wait = false): Promise<Outcome<boolean>> {
    return this.#run(async (engines) => {
      await importTransactions({
        store: engines.store(),
        input: chunksOf(lines.map((line) => `${JSON.stringify(line)}\n`).join('')),
        author: AUTHOR,
        clock: systemClock,
        onRefused: () => undefined,
        onProgress: () => undefined,
        signal: new AbortController().signal,
      });
      return wait && (await this.#applied(engines));
    });
  }

  erase(id: number): Promise<Outcome<unknown>> {
    return this.#run((engines) => {
      const parts = { store: engines.store(), queue: engines.queue(), view: engines.view() };
      return eraseTransaction(id, { ...parts, clock: systemClock, author: AUTHOR, reason: 'asked' });
    });
  }

  redeliver(ids: readonly string[], force: boolean): Promise<Outcome<unknown>> {
    return this.#run((engines) => redeliverByIds(ids, force, this.#redelivery(engines)));
  }

  redeliverFailed(accountId: number, prefix: string): Promise<Outcome<unknown>> {
    const which = { sinceMs: null, untilMs: null, which: 'failed' } as const;
    return this.#run((engines) => redeliverOfKey({ accountId, prefix, ...which }, this.#redelivery(engines)));
  }

  rebuild(): Promise<Outcome<unknown>> {
    return this.#run((engines, name) =>
      rebuildTransactions({
        store: engines.store(),
        view: engines.view(),
        coordination: engines.coordination(),
        clock: systemClock,
        log: this.#options.log,
        holder: name,
        author: AUTHOR,
        signal: new AbortController().signal,
        reason: 'simulation',
      }),
    );
  }

  verify(accountIds: readonly number[]): Promise<Outcome<{ view: number; deliveries: number }>> {
    const { config, log } = this.#options;
    return this.#run((engines) =>
      verifyLastDays({
        store: engines.store(),
        view: () => engines.view(),
        queue: () => engines.queue(),
        accountIds,
        clock: systemClock,
        environment: config.FUEL_ENVIRONMENT,
        author: AUTHOR,
        log,
        retentionMs: config.FUEL_DELIVERY_RETENTION_DAYS * 86_400_000,
        signal: new AbortController().signal,
      }),
    );
  }

  /** Proves the log like the nightly verification. */
  prove(): Promise<Outcome<LogVerification>> {
    const { config } = this.#options;
    return this.#run(async (engines) => {
      const store = engines.store();
      const key = openSigner(await storeIdentity(store, systemClock), config).verifier;
      return verifyLog({ store, key });
    });
  }

  replayParked(group: string): Promise<Outcome<number>> {
    return this.#run((engines) => engines.subscriptions().replayParked(group));
  }

  async #run<T>(work: (engines: Engines, name: string) => Promise<T>): Promise<Outcome<T>> {
    const { stores, gate, onFault } = this.#options;
    const command = new Command(`op-${++this.#commands}`);
    const within = (run: () => void): void => {
      if (command.isAlive) owners.run(command, run);
    };
    const opened = openStores(stores, gate(command), within);
    command.onKilled.push(() => opened.end());
    const done = owners.run(command, async (): Promise<Outcome<T>> => {
      try {
        return { kind: 'done', value: await work(opened.engines, command.name) };
      } catch (error) {
        if (!command.isAlive) return { kind: 'killed' };
        const reason = error instanceof Error ? error.message : String(error);
        if (error instanceof FuelError && error.code === 'STORE_UNAVAILABLE')
          return { kind: 'unavailable', reason };
        if (!(error instanceof FuelError)) onFault(`the command ${command.name}`, error);
        return { kind: 'refused', reason };
      }
    });
    const outcome = await Promise.race([done, command.killed.promise]);
    if (command.isAlive) command.kill();
    return outcome;
  }

  #webhook(url: string) {
    const masterKeys = openMasterKeys(this.#options.config);
    const names = createNameLookup({ resolve: resolveName });
    return { url, allowPrivate: false, masterKeys, names };
  }

  #redelivery(engines: Engines) {
    const quiet = { onRefused: () => undefined, onProgress: () => undefined };
    return {
      writer: writerOf(engines),
      queue: engines.queue(),
      ...quiet,
      signal: new AbortController().signal,
    };
  }

  /** Waits like `--wait`. Returns false if no process was alive. */
  async #applied(engines: Engines): Promise<boolean> {
    const position = await engines.store().head();
    const parts = {
      coordination: engines.coordination(),
      view: engines.view(),
      accounts: engines.accounts(),
      position,
    };
    return (await waitUntilApplied(parts)) === 'applied';
  }
}

function writerOf(engines: Engines) {
  return { store: engines.store(), clock: systemClock, author: AUTHOR };
}

async function* chunksOf(text: string): AsyncGenerator<Buffer> {
  yield Buffer.from(text);
}
