import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import type { RecordedEvent } from '../../../src/event-store/recorded-event.ts';
import { keyIssued, PREFIX, profileSet, webhookSet } from '../../support/accounts/account-samples.ts';
import { settle } from '../../support/deliveries/fake-scheduler.ts';
import { listed } from '../../support/deliveries/listed.ts';
import { failedWith, OK, PushMachine, READY, TIMEOUT } from '../../support/deliveries/push.ts';
import { PushModel } from '../../support/deliveries/push-model.ts';

const OTHER = 'bbbbbbbbbb';
const PREFIXES = [PREFIX, OTHER];
const HOUR_MS = 3_600_000;

const prefix = fc.constantFrom(...PREFIXES);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('confirm' as const),
      many: fc.integer({ min: 1, max: 6 }),
      early: fc.boolean(),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('fan out' as const),
      shuffle: fc.nat(1_000),
      again: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('void' as const), which: fc.nat(30) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('answer' as const),
      prefix,
      how: fc.constantFrom('ok', 'ok', 'fail', 'fail', 'hang', 'never'),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('wait' as const),
      ms: fc.constantFrom(1, 20, 600, 6_000, 31_000, 200_000),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('key' as const),
      prefix,
      what: fc.constantFrom(
        'KeySwitchedOff',
        'KeySwitchedOn',
        'WebhookRemoved',
        'WebhookEnabled',
        'WebhookDisabled',
        'off and on',
        'removed and set',
        'set',
        'move',
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('access' as const),
      what: fc.constantFrom('IntegrationEnabled', 'IntegrationDisabled', 'profile', 'later profile'),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('redeliver' as const), which: fc.nat(30), force: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('stop and start' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('kill' as const), afterCommits: fc.integer({ min: 0, max: 3 }) }),
  },
);
/** Everything else happens also while no process runs. */
const NEEDS_PROCESS = new Set<Step['do']>(['fan out', 'stop and start', 'kill']);
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** A machine with two keys, driven step by step, and the model beside it. */
class Run {
  readonly machine: PushMachine;
  readonly model: PushModel;
  readonly #answers = new Map<string, string>();
  readonly #events: RecordedEvent[] = [];
  readonly #handled = new Set<number>();
  #transactions = 0;
  #sent = 0;

  constructor(folder: string) {
    this.machine = new PushMachine(folder);
    this.model = new PushModel(this.machine);
    this.machine.sender.answer = (sent) => {
      this.model.fold();
      this.model.attemptBegins(sent);
      const afterMs = 3 + (this.#sent++ % 5);
      const how = this.#answers.get(sent.url.includes('/b') ? OTHER : PREFIX) ?? 'ok';
      if (how === 'never') return 'never';
      if (how === 'hang') return { outcome: TIMEOUT, afterMs: 500 };
      return { outcome: how === 'ok' ? OK : failedWith(503), afterMs };
    };
  }

  async begin(): Promise<void> {
    const other = webhookSet({ prefix: OTHER, url: 'https://example.com/b' });
    await this.machine.account(...READY, keyIssued({ prefix: OTHER }), other);
    this.machine.start();
    await this.#rest();
  }

  async take(taken: Step): Promise<void> {
    const { machine } = this;
    if (!machine.isAlive && NEEDS_PROCESS.has(taken.do)) machine.start();
    if (taken.do === 'confirm') await this.#confirm(taken.many, taken.early);
    if (taken.do === 'fan out') await this.#fanOut(taken.shuffle, taken.again);
    if (taken.do === 'void') await this.#void(taken.which);
    if (taken.do === 'answer') this.#answers.set(taken.prefix, taken.how);
    if (taken.do === 'wait') await machine.scheduler.advance(taken.ms);
    if (taken.do === 'key') await this.#changeKey(taken.prefix, taken.what);
    if (taken.do === 'access') await machine.account(this.#accessEvent(taken.what));
    if (taken.do === 'redeliver') await this.#redeliver(taken.which, taken.force);
    if (taken.do === 'stop and start') await this.#restart();
    if (taken.do === 'kill') {
      if (taken.afterCommits === 0) machine.kill();
      else machine.killAfterCommits(taken.afterCommits);
    }
    await this.#rest();
  }

  /** Mends everything, hands out every event and gives all that is owed the time to arrive. */
  async end(): Promise<void> {
    this.machine.kill();
    this.#answers.clear();
    this.machine.start();
    await this.machine.account(
      { type: 'IntegrationEnabled', data: { account_id: 7 } },
      profileSet('2026-01-01T00:00:00.000Z', null),
    );
    await this.#fanOut(1, true);
    await this.machine.scheduler.advance(400_000);
    await this.#rest();
  }

  async check(): Promise<void> {
    const { queue } = this.machine;
    expect(this.model.violations).toEqual([]);
    const deliveries = await listed(queue);
    expect(deliveries.map(({ id }) => id).sort()).toEqual([...this.model.owed].sort());
    for (const { state, reason, transactionId } of deliveries) {
      const withdrawn = this.model.withdrawn.has(transactionId);
      expect(withdrawn ? ['withdrawn', 'delivered', 'failed'] : ['delivered', 'failed']).toContain(state);
      if (state === 'failed' || state === 'withdrawn') expect(reason).not.toBe(null);
    }
    for (const name of PREFIXES) {
      expect((await queue.health(name)).failedInARow).toBe(this.model.runs.get(name) ?? 0);
    }
  }

  async #rest(): Promise<void> {
    await settle();
    this.machine.follow();
    this.model.fold();
    await settle();
  }

  async #confirm(many: number, early: boolean): Promise<void> {
    for (let index = 0; index < many; index++) {
      const overrides = early ? { created_at: '2020-01-01T00:00:00.000Z' } : {};
      this.#events.push(await this.machine.confirm(++this.#transactions, overrides));
    }
  }

  async #void(which: number): Promise<void> {
    if (this.#transactions === 0) return;
    const transactionId = 1 + (which % this.#transactions);
    this.#events.push(await this.machine.void(transactionId));
  }

  /** Handles what is not handled yet, and all once more where told, in an order of its own. */
  async #fanOut(shuffle: number, again: boolean): Promise<void> {
    const events = this.#events
      .filter(({ position }) => again || !this.#handled.has(position))
      .map((event) => ({ event, order: (event.position * (2 * shuffle + 1)) % 101 }))
      .sort((one, other) => one.order - other.order)
      .map(({ event }) => event);
    let done = false;
    const handling = this.machine.fan(...events).then(() => {
      done = true;
      for (const { position } of events) this.#handled.add(position);
      for (const { type, data } of events) {
        if (type === 'TransactionVoided')
          this.model.withdrawn.add((data as { transaction_id: number }).transaction_id);
      }
    });
    await Promise.race([handling, this.#untilIdle(() => done)]);
  }

  /** A killed process never ends what it was at. */
  async #untilIdle(done: () => boolean): Promise<void> {
    while (!done() && this.machine.isAlive) await settle();
  }

  async #redeliver(which: number, force: boolean): Promise<void> {
    const ids = [...this.model.owed];
    const id = ids[which % Math.max(1, ids.length)];
    if (id === undefined) return;
    const answer = await this.machine.queue.redeliver(id, { force, dueAtMs: this.machine.scheduler.now() });
    if (answer === 'due') this.model.redeliveryAsked(id);
  }

  async #restart(): Promise<void> {
    const stopped = this.machine.dispatcher.stop();
    this.#answers.clear(); // those under way end by themselves, those that never do are cut off by the kill
    await this.machine.scheduler.advance(600);
    await Promise.race([stopped, settle()]);
    this.machine.kill();
    this.machine.start();
  }

  async #changeKey(name: string, what: string): Promise<void> {
    const steps = {
      'off and on': ['KeySwitchedOff', 'KeySwitchedOn'],
      'removed and set': ['WebhookRemoved', 'set'],
    };
    const whats = steps[what as keyof typeof steps] ?? [what];
    await this.machine.account(...whats.map((one) => this.#keyEvent(name, one)));
  }

  #keyEvent(name: string, what: string): AccountEvent {
    const path = name === OTHER ? 'b' : 'a';
    const data = { account_id: 7, prefix: name };
    if (what === 'set') {
      const set_at = new Date(this.machine.scheduler.now()).toISOString();
      return webhookSet({ ...data, url: `https://example.com/${path}`, set_at, secret: null });
    }
    if (what === 'move') return webhookSet({ ...data, url: `https://example.com/${path}/new`, secret: null });
    const evidence = { failed_in_a_row: 50, failing_since: null, last_answers: [] };
    if (what === 'WebhookDisabled')
      return { type: what, data: { ...data, reason: 'by the operator', ...evidence } };
    return { type: what as 'KeySwitchedOff', data };
  }

  #accessEvent(what: string): AccountEvent {
    const nowMs = this.machine.scheduler.now();
    const at = (ms: number) => new Date(nowMs + ms).toISOString();
    if (what === 'profile') return profileSet('2026-01-01T00:00:00.000Z', at(700));
    if (what === 'later profile') return profileSet(at(3_000), at(HOUR_MS), 'later');
    return { type: what as 'IntegrationEnabled', data: { account_id: 7 } };
  }
}

async function run(steps: readonly Step[]): Promise<readonly string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'fuel-push-'));
  const current = new Run(folder);
  try {
    await current.begin();
    for (const taken of steps) await current.take(taken);
    await current.end();
    await current.check();
    return current.machine.logLines;
  } finally {
    current.machine.kill();
    await current.machine.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

test('whatever happens, each transaction is owed, attempted and ended by the rules, and the failures counted', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 60, size: 'max' }), async (steps) => {
      await run(steps);
    }),
    { numRuns: 60 },
  );
}, 120_000);

test('the same events, clock and answers give the same log of decisions, byte for byte', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 50, size: 'max' }), async (steps) => {
      expect((await run(steps)).join('')).toBe((await run(steps)).join(''));
    }),
    { numRuns: 10 },
  );
}, 60_000);
