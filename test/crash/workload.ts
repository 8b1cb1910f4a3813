import { setTimeout as sleep } from 'node:timers/promises';
import { changeAccount } from '../../src/accounts/change-account.ts';
import { systemClock } from '../../src/base/clock.ts';
import { FuelError } from '../../src/base/errors.ts';
import { Random } from '../../src/customers/sample/random.ts';
import type { AccountCommand } from '../../src/domain/account-commands.ts';
import { waitUntilApplied } from '../../src/operator/serve/wait-applied.ts';
import {
  cancelled,
  confirmed,
  type EventLine,
  external,
  linesOf,
  voided,
} from '../support/transactions/e2e-samples.ts';
import type { Customer, Stage } from './stage.ts';

const DAY_MS = 86_400_000;
const AUTHOR = { actor: 'test', command: 'test' };
const BATCH = [1, 25] as const;
const PAUSE_MS = [30, 300] as const;
/** One in this many transactions is kept for erasure and not changed otherwise. */
const ERASED_ONE_IN = 10;
/** The one of the two accounts with switched keys that ends with its key off. */
const LEFT_OFF = 12;
/** The first id of accounts that are opened meanwhile. */
const LARGE_ACCOUNTS = 1_000;
const CORPORATES = 1_000;
/** After this, attempts that began before every process knew have reached their receivers. */
const LAST_ATTEMPTS_MS = 1_500;

/** A transaction as its operator knows it. */
interface Known {
  readonly account: number;
  readonly line: EventLine;
  state: 'visible' | 'hidden' | 'erased';
}

/** A time in which nothing may be sent to a webhook, since every process knew that. */
interface Silence {
  readonly path: string | undefined;
  readonly why: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** The operators' work while processes are killed. Each piece is repeated until its outcome is known. */
export class Workload {
  readonly known = new Map<number, Known>();
  /** The transactions that must not name their driver any more. */
  readonly redacted = new Set<number>();
  readonly silences: Silence[] = [];
  readonly #stage: Stage;
  readonly #seed: number;
  #lastId = 1_000;

  constructor(stage: Stage, seed: number) {
    this.#stage = stage;
    this.#seed = seed;
  }

  /** Works until the signal aborts. Resolves when the outcome of all pieces is known. */
  async run(signal: AbortSignal): Promise<void> {
    const switched = this.#stage.withPurpose('key', 'webhook', 'integration');
    await Promise.all([
      this.#record(new Random(this.#seed), signal),
      this.#open(new Random(this.#seed + 1), signal),
      ...switched.map((customer, index) =>
        this.#switch(customer, new Random(this.#seed + 2 + index), signal),
      ),
    ]);
  }

  /** Returns the transactions that are still to be erased, oldest first. */
  erasable(): number[] {
    const isErasable = ([id, { state }]: [number, Known]): boolean =>
      id % ERASED_ONE_IN === 0 && state === 'visible';
    return [...this.known].filter(isErasable).map(([id]) => id);
  }

  erased(): number[] {
    return [...this.known].filter(([, { state }]) => state === 'erased').map(([id]) => id);
  }

  /** Makes new transactions of the account, which become known once they are recorded. */
  make(account: number, count: number, random: Random): EventLine[] {
    return Array.from({ length: count }, () => {
      this.#lastId += 1;
      const now = new Date().toISOString();
      const data = { account_id: account, created_at: now, images: { pump: null, odometer: null } };
      const driver = { id: 77, name: `Driver of ${this.#lastId}`, mobile_number: null };
      return random.chance(0.2)
        ? external(this.#lastId, { ...data, driver })
        : confirmed(this.#lastId, { ...data, driver, confirmed_at: now });
    });
  }

  recorded(lines: readonly EventLine[], state: Known['state'] = 'visible'): void {
    for (const line of lines) {
      this.known.set(idOf(line), { account: Number(line.data.account_id), line, state });
    }
  }

  /** Repeats the work, as an operator does, while an unavailable store leaves the outcome unknown. */
  async untilKnown<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        const done = await work();
        this.#stage.done += 1;
        return done;
      } catch (error) {
        const isUnknown = error instanceof FuelError && /^STORE_(UNAVAILABLE|BUSY)$/.test(error.code);
        if (!isUnknown) throw error;
        this.#stage.retries += 1;
        this.#stage.lastRefusal = error.message;
        await sleep(100);
      }
    }
  }

  async #record(random: Random, signal: AbortSignal): Promise<void> {
    const accounts = this.#stage.withPurpose('steady', 'key', 'webhook', 'integration');
    let last: readonly EventLine[] = [];
    while (!signal.aborted) {
      const customer = accounts[random.between([0, accounts.length - 1])];
      const count = random.between(BATCH);
      const dice = random.next();
      if (customer === undefined) throw new Error('nobody has a webhook');
      if (dice < 0.7) {
        last = this.make(customer.account, count, random);
        await this.#import(last);
        this.recorded(last);
      } else if (dice < 0.9) {
        await this.#end(count, random);
      } else {
        await this.#import(last); // it is recorded already, and stays as it is
      }
      await sleep(random.between(PAUSE_MS));
    }
  }

  /** Voids or cancels some of the latest, which may be on their way to a receiver. */
  async #end(count: number, random: Random): Promise<void> {
    const open = [...this.known].filter(([id, { state }]) => state === 'visible' && id % ERASED_ONE_IN !== 0);
    const ended = open.slice(-2 * count).filter(() => random.chance(0.4));
    const make = random.chance(0.5) ? voided : cancelled;
    await this.#import(ended.map(([id, { account }]) => make(id, { account_id: account })));
    for (const [, transaction] of ended) transaction.state = 'hidden';
  }

  async #import(lines: readonly EventLine[]): Promise<void> {
    const counts = await this.untilKnown(() => this.#stage.operator.import(linesOf(lines), { wait: false }));
    if (counts.recorded + counts.unchanged !== lines.length) {
      this.#stage.fault(`an import of ${lines.length} lines answered ${JSON.stringify(counts)}`);
    }
  }

  /** Opens large accounts, each with enough events for several batches of the followers. */
  async #open(random: Random, signal: AbortSignal): Promise<void> {
    for (let account = LARGE_ACCOUNTS; !signal.aborted; account++) {
      await this.#change(account, largeAccount(account));
      await pause(random.between([3_000, 8_000]), signal);
    }
  }

  /** Switches access off and on, repeatedly. Once every process knows, it is off in all of them. */
  async #switch(customer: Customer, random: Random, signal: AbortSignal): Promise<void> {
    const { off, on } = switches(customer);
    while (!signal.aborted) {
      await pause(random.between([500, 3_000]), signal);
      await this.#change(customer.account, [off]);
      if (await this.#applied()) await this.#watch(customer, random.between([500, 2_500]));
      await this.#change(customer.account, [on]);
    }
    if (customer.account === LEFT_OFF) await this.#change(customer.account, [off]);
  }

  /** Checks for this long that no process serves the key or sends to the webhook, whatever is killed. */
  async #watch(customer: Customer, forMs: number): Promise<void> {
    const { account, key, purpose, path } = customer;
    const fromMs = Date.now();
    const untilMs = fromMs + LAST_ATTEMPTS_MS + forMs;
    while (Date.now() < untilMs) {
      for (const member of purpose === 'webhook' ? [] : this.#stage.members) {
        const answer = await member.ask(pageOfAll(), key);
        if (answer?.status === 200) {
          this.#stage.fault(`${member.name} serves account ${account} while its ${purpose} is off`);
        }
      }
      await sleep(50);
    }
    this.silences.push({
      path,
      why: `${purpose} off`,
      fromMs: fromMs + LAST_ATTEMPTS_MS,
      untilMs: Date.now(),
    });
  }

  async #change(account: number, commands: readonly AccountCommand[]): Promise<void> {
    await this.untilKnown(() =>
      this.#stage.operator.with(async (engines) => {
        const writer = { store: engines.store(), clock: systemClock, author: AUTHOR };
        await changeAccount(writer, account, commands);
      }),
    );
  }

  /** True if every live process has applied what is recorded; false if one did not in time. */
  async #applied(): Promise<boolean> {
    try {
      await this.untilKnown(() =>
        this.#stage.operator.with(async (engines) => {
          const position = await engines.store().head();
          const coordination = engines.coordination();
          await waitUntilApplied({
            coordination,
            view: engines.view(),
            accounts: engines.accounts(),
            position,
          });
        }),
      );
      return true;
    } catch (error) {
      if (error instanceof FuelError && error.code === 'REFUSED') return false;
      throw error;
    }
  }
}

/** Returns the query for the first page of everything that the tests record. */
export function pageOfAll(): string {
  const [from, to] = [Date.now() - DAY_MS, Date.now() + DAY_MS].map((ms) => new Date(ms).toISOString());
  return `/transactions?from=${from}&to=${to}&limit=100`;
}

const idOf = ({ data }: EventLine): number => Number(data.transaction_id);

function largeAccount(accountId: number): AccountCommand[] {
  const corporates = Array.from({ length: CORPORATES }, (_, index): AccountCommand => {
    const corporateId = index + 1;
    return { type: 'SetCorporate', accountId, corporateId, name: `Depot ${corporateId}`, groupId: null };
  });
  return [{ type: 'OpenAccount', accountId, name: 'Large' }, ...corporates];
}

function switches({ account: accountId, prefix, purpose }: Customer): {
  readonly off: AccountCommand;
  readonly on: AccountCommand;
} {
  const ref = { accountId, prefix };
  if (purpose === 'key')
    return { off: { type: 'SwitchKeyOff', ...ref }, on: { type: 'SwitchKeyOn', ...ref } };
  if (purpose === 'integration') {
    return { off: { type: 'DisableIntegration', accountId }, on: { type: 'EnableIntegration', accountId } };
  }
  const evidence = { failedInARow: 0, failingSinceMs: null, lastAnswers: [] };
  return {
    off: { type: 'DisableWebhook', ...ref, reason: 'a test', evidence },
    on: { type: 'EnableWebhook', ...ref },
  };
}

/** Pauses. Ends early if the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => undefined);
}
