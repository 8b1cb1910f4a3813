import { setTimeout as sleep } from 'node:timers/promises';
import { define, enums, type Infer, object, optional, type Struct } from 'superstruct';
import { systemClock } from '../../base/clock.ts';
import { FuelError } from '../../base/errors.ts';
import { DAY_MS, formatDateTime } from '../../domain/values/date-time.ts';
import { id } from '../../domain/values/primitives.ts';
import type { Presigner } from '../../records/presign.ts';
import { furtherTransaction, NEW_KINDS, RECORDED_AFTER_MS, type Recorded } from '../sample/generator.ts';
import { type Routes, reading } from './control-server.ts';
import type { MockData } from './mock-data.ts';
import type { MockOperator } from './mock-operator.ts';
import { KINDS, type Kind } from './mock-webhooks.ts';
import { FAULTS, type Fault } from './pull-faults.ts';
import { type SentWebhook, sendWebhook } from './send-mock.ts';
import { sendPaced } from './send-paced.ts';

const MAX_COUNT = 1_000;

const must = <T>(what: string, fits: (value: unknown) => boolean): Struct<T, null> =>
  define('value', (value) => fits(value) || `must be ${what}`);
const whole = (least: number) =>
  must<number>(
    `an integer from ${least} to ${MAX_COUNT}`,
    (value) => Number.isInteger(value) && Number(value) >= least && Number(value) <= MAX_COUNT,
  );
const url = must<string>('the URL of your receiver, with https:// or http://', (value) =>
  /^https?:$/.test(URL.parse(String(value))?.protocol ?? ''),
);
const status = must<Fault>(`one of ${Object.keys(FAULTS).join(', ')}`, (value) =>
  Object.hasOwn(FAULTS, String(value)),
);
const count = optional(whole(1));
const receiver = { url, key: optional(enums(['first', 'second'])) };
const kind = enums(Object.keys(KINDS) as Kind[]);
const SEND = object({ kind, transaction: optional(id), count, ...receiver });
type Receiver = Pick<Infer<typeof SEND>, keyof typeof receiver>;
const NEW = object({ kind: enums(NEW_KINDS), count, days_ago: optional(whole(0)), url: optional(url) });
const FAIL = object({ status: optional(status), times: optional(whole(0)) });

export interface ControlParts {
  readonly operator: MockOperator;
  readonly data: MockData;
  readonly presigner: Presigner;
  readonly faults: Fault[];
  readonly signal: AbortSignal; // ends the waits between attempts
}

/** The routes of the control listener. */
export function createControls({ operator, data, presigner, faults, signal }: ControlParts): Routes {
  /** Webhooks take the first ones, which move to the end. */
  const shown = new Map(data.shown);
  let { nextId } = data;
  const takeNext = (size: number): number[] => {
    const taken = [...shown].slice(0, size);
    for (const [id, event] of taken) if (shown.delete(id)) shown.set(id, event);
    return taken.map(([id]) => id);
  };
  const deliver = async (kind: Kind, groups: number[][], to: Receiver) => {
    const { plan, expected, retryDelaysMs = [] } = KINDS[kind];
    const { prefix, webhookSecret: secret } = to.key === 'second' ? data.second : data;
    const rows = await Promise.all(groups.map((ids) => Promise.all(ids.map(operator.shown))));
    const jobs = rows.map((group) => async () => {
      const sent: SentWebhook[] = [];
      for (const [attempt, waitMs] of [0, ...retryDelaysMs].entries()) {
        await sleep(waitMs, undefined, { signal });
        const wanted = attempt < retryDelaysMs.length ? 'accepted or 503' : expected;
        const terms = { url: to.url, prefix, secret, presigner, atMs: systemClock.now() };
        for (const request of plan(group, terms)) sent.push(await sendWebhook(request, wanted));
        if (sent.at(-1)?.as_expected && sent.at(-1)?.status !== 503) break;
      }
      return sent;
    });
    return await sendPaced(jobs);
  };
  return {
    'POST /send': reading(SEND, async ({ kind, transaction, count = 1, ...to }) => {
      const { transactions: size = 1 } = KINDS[kind];
      if (transaction !== undefined && size * count !== 1)
        throw new FuelError(
          'USAGE',
          'transaction: leave it out with count, and with a kind that sends none or two',
        );
      const groups = Array.from({ length: count }, () => (transaction ? [transaction] : takeNext(size)));
      return { sent: await deliver(kind, groups, to) };
    }),
    'POST /void': reading(object({ transaction: id }), async ({ transaction }) => {
      await operator.shown(transaction);
      const ids = { transaction_id: transaction, account_id: data.account.id };
      const how = { voided_at: formatDateTime(systemClock.now()), reason: 'asked for' };
      await operator.record([{ type: 'TransactionVoided', data: { ...ids, ...how } }]);
      shown.delete(transaction);
      return { voided: transaction };
    }),
    'POST /new': reading(NEW, async ({ kind, count = 1, days_ago = 0, url }) => {
      const createdMs = systemClock.now() - RECORDED_AFTER_MS - days_ago * DAY_MS;
      const made: Recorded[] = [];
      for (; made.length < count; nextId++)
        made.push(furtherTransaction(kind, [...shown.values(), ...made], { id: nextId, createdMs }));
      for (const event of made) shown.set(event.data.transaction_id, event);
      await operator.record(made);
      const created = made.map((event) => event.data.transaction_id);
      const groups = created.map((id) => [id]);
      return { created, sent: url === undefined ? [] : await deliver('good', groups, { url }) };
    }),
    'POST /fail': reading(FAIL, async ({ status = 'reset', times = 1 }) => {
      if (times === 0) faults.length = 0; // cancels those that are left
      for (let n = 0; n < times; n++) faults.push(status);
      return { failing: faults };
    }),
    'GET /transactions': () => operator.transactions(),
  };
}
