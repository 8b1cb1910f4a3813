import { FuelError } from '../../../base/errors.ts';
import { pause } from '../../../base/pause.ts';
import { REDELIVERABLE } from '../../../domain/account-events.ts';
import { EARLIEST_MS, formatDateTime, LATEST_MS } from '../../../domain/values/date-time.ts';
import type { DeliverySummary } from '../../../push/queue/delivery.ts';
import { DELIVERY_STATES } from '../../../push/queue/delivery.ts';
import { attemptAnswer, deliveryAnswer, withHeldReasons } from '../../answers/delivery.ts';
import { deliveryFilter, requireRange } from '../../answers/filters.ts';
import { recordAnswer } from '../../answers/transaction.ts';
import { DeliveryChanges } from '../../deliveries/delivery-changes.ts';
import { listUnsent } from '../../deliveries/list-unsent.ts';
import {
  cancelRedelivery,
  countRedeliverable,
  type KeyRedelivery,
  REDELIVERED_PER_SECOND,
  redeliverByIds,
  redeliverOfKey,
} from '../../deliveries/redeliver.ts';
import { command, noun, type Session } from '../command/command.ts';
import { deliveryContext } from '../command/deliveries.ts';
import { accountOf, findKey, requireKnown } from '../command/known-names.ts';
import { longWork } from '../command/long-work.ts';
import * as option from '../command/options.ts';
import { abortOnInterrupt } from '../command/output.ts';

const DEFAULT_LIMIT = 50;
const MAX_LISTED = 1_000;
const FOLLOW_MS = 500;

const LIST = {
  key: option.prefix('deliveries to this key'),
  account: option.id('deliveries of this account'),
  transaction: option.id('deliveries of this transaction'),
  state: option.choice('state', 'in this state', DELIVERY_STATES),
  ...option.sinceUntil('created'),
  limit: option.withDefault(
    option.valued('n', `at most this many, up to ${MAX_LISTED}`, readLimit),
    DEFAULT_LIMIT,
  ),
  after: option.valued('id', 'continue after this delivery', String),
  follow: option.flag('print those that are new or have changed too, until interrupted or --until'),
  unsent: option.flag('transactions, created in the time given, of which --key has no delivery, and why'),
};

const list = command({
  usage: 'list',
  summary: 'list deliveries, newest first',
  example: 'fuel delivery list --account 7 --state failed --since 2026-09-01T00:00:00Z',
  options: LIST,
  async work(session, _, options) {
    if (options.unsent) return printUnsent(session, options);
    const { engines } = session;
    const filter = deliveryFilter(options);
    if (options.follow && options.after !== undefined) {
      throw option.usage('--follow shows the newest: leave --after out');
    }
    const queue = engines.queue();
    const after = options.after === undefined ? undefined : await queue.find(options.after);
    if (options.after !== undefined && after === undefined) {
      throw new FuelError('REFUSED', `there is no delivery ${options.after} to continue after`);
    }
    const changes = options.follow && new DeliveryChanges(queue, filter);
    const deliveries = changes
      ? (await changes.look()).slice(-options.limit).reverse()
      : (await queue.page(filter, { limit: options.limit, after })).deliveries;
    if (deliveries.length === 0) await requireKnown(engines, options);
    await print(session, deliveries);
    if (changes) await follow(session, changes, filter.untilMs);
  },
});

const show = command({
  usage: 'show <id>',
  summary: 'show one delivery with its attempts and what was answered',
  example: 'fuel delivery show 0e6c1a5c-6c0f-5f6e-9a53-1d2f4a7d9b10',
  args: [String],
  async work(session, [id]) {
    const { engines, out } = session;
    const found = await engines.queue().find(id);
    const [delivery] = await withReasons(session, found === undefined ? [] : [found]);
    if (delivery === undefined) {
      throw new FuelError('REFUSED', `there is no delivery ${id}: fuel delivery list shows them`);
    }
    const attempts = delivery.attempts.map(attemptAnswer);
    out.answer({ ...deliveryAnswer(delivery), attempts }, { id: 'delivery' });
  },
});

const redeliver = command({
  usage: 'redeliver [id...]',
  summary: 'send deliveries again, under their own ids: those named, or those of a key, 50 a second',
  example: 'fuel delivery redeliver --failed --key a1b2c3d4e5 --since 2026-09-01T00:00:00Z',
  options: {
    force: option.flag('redeliver delivered ones too'),
    failed: option.flag('all failed deliveries of --key'),
    delivered: option.flag('all delivered deliveries of --key'),
    key: option.prefix('the key, with --failed, --delivered or --cancel'),
    ...option.sinceUntil('with --key: created'),
    dryRun: option.flag('with --key: only count what would be sent'),
    cancel: option.flag('cancel redeliveries for --key that are still pending'),
  },
  changes: ({ dryRun }) => dryRun !== true,
  asksWhy: ({ cancel }) => cancel === true,
  async work(session, ids, options) {
    const { key, since, until, force, dryRun, cancel, reason } = options;
    const wanted = REDELIVERABLE.filter((which) => options[which] === true);
    const [which] = wanted;
    const isOfKey = key !== undefined && ids.length === 0 && force === undefined;
    const isRange = isOfKey && wanted.length === 1 && (cancel ?? reason) === undefined;
    const isCancel = isOfKey && wanted.length === 0 && cancel && (since ?? until ?? dryRun) === undefined;
    const others = key ?? since ?? until ?? dryRun ?? cancel ?? reason;
    const isNamed = ids.length > 0 && wanted.length === 0 && others === undefined;
    if (!isRange && !isCancel && !isNamed) {
      throw option.usage(
        'name deliveries (with --force where needed), or give --key with --failed, --delivered or --cancel',
      );
    }
    requireRange(options);
    const { engines, writer, out } = session;
    if (key === undefined) {
      const again = 'run the same command again';
      return longWork(out, { again, names: NAMES }, ({ endLine: _, ...parts }) =>
        redeliverByIds(ids, force === true, { writer: writer(), queue: engines.queue(), ...parts }),
      );
    }
    const accountId = (await findKey(engines, key)).entry.id;
    if (which === undefined) {
      const parts = { writer: writer(), queue: engines.queue() };
      const cancelled = await cancelRedelivery({ accountId, prefix: key, reason }, parts);
      out.result({ cancelled }, `cancelled ${cancelled}`);
      return 0;
    }
    return redeliverKey(
      session,
      { accountId, prefix: key, sinceMs: since ?? null, untilMs: until ?? null, which },
      dryRun,
    );
  },
});

export const addDeliveryCommands = noun({
  name: 'delivery',
  summary: 'webhook deliveries: what was sent, what was answered, redelivery',
  example: 'fuel delivery list --key a1b2c3d4e5 --state failed',
  commands: [list, show, redeliver],
});

/** What the customer has to pull. */
async function printUnsent(
  session: Session,
  { key, since, until, limit, ...others }: option.Values<typeof LIST>,
): Promise<void> {
  const { account, transaction, state, after, follow } = others;
  if (key === undefined || (account ?? transaction ?? state ?? after ?? follow) !== undefined) {
    throw option.usage('--unsent goes with --key, and with --since, --until and --limit');
  }
  requireRange({ since, until });
  const accountId = (await findKey(session.engines, key)).entry.id;
  const of = { accountId, prefix: key, fromMs: since ?? EARLIEST_MS, toMs: until ?? LATEST_MS };
  const parts = { ...deliveryContext(session), view: session.engines.view() };
  let printed = 0;
  for await (const { row, reason } of listUnsent(of, parts)) {
    await session.out.row({ ...recordAnswer(accountId, row), reason }, 'transaction');
    printed += 1;
    if (printed === limit) return;
  }
}

/** Prints what is new or has changed, until interrupted or the range is over. */
async function follow(
  session: Session,
  changes: DeliveryChanges,
  untilMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const signal = abortOnInterrupt();
  while (session.clock.now() <= untilMs) {
    await pause(FOLLOW_MS, signal);
    if (signal.aborted) return;
    await print(session, await changes.look());
  }
}

async function print(session: Session, deliveries: readonly DeliverySummary[]): Promise<void> {
  for (const delivery of await withReasons(session, deliveries))
    await session.out.row(deliveryAnswer(delivery), 'delivery');
}

function withReasons<T extends DeliverySummary>(session: Session, deliveries: readonly T[]): Promise<T[]> {
  return withHeldReasons(deliveries, accountOf(session), session.clock.now());
}

const NAMES = { unchanged: 'already pending', left_out: 'left out' };

async function redeliverKey(
  { engines, writer, clock, out }: Session,
  of: KeyRedelivery,
  dryRun: true | undefined,
): Promise<number> {
  const parts = { writer: writer(), queue: engines.queue() };
  if (dryRun) {
    const deliveries = await countRedeliverable(of, { ...parts, signal: abortOnInterrupt() });
    out.result({ deliveries }, `would redeliver ${deliveries}`);
    return 0;
  }
  let oldestAtMs: number | undefined;
  const onPage = (createdAtMs: number): void => {
    oldestAtMs = createdAtMs;
  };
  const options = {
    get again() {
      return of.which === 'failed' || oldestAtMs === undefined
        ? 'run the same command again'
        : `run it again with --until ${formatDateTime(oldestAtMs)}`;
    },
    names: NAMES,
  };
  return longWork(out, options, async ({ endLine: _, ...long }) => {
    const deliveries = await countRedeliverable(of, { ...parts, signal: long.signal });
    if (long.signal.aborted) return { redelivered: 0, unchanged: 0, refused: 0, left_out: 0 };
    const lastDueAtMs = clock.now() + (deliveries * 1_000) / REDELIVERED_PER_SECOND;
    if (deliveries > 0)
      out.note(`${deliveries} deliveries; the last is due at ${formatDateTime(lastDueAtMs)}`);
    return redeliverOfKey(of, { ...parts, ...long, onPage });
  });
}

function readLimit(value: string): number {
  const limit = option.readCount(value);
  if (limit > MAX_LISTED) throw option.usage(`It must be at most ${MAX_LISTED}.`);
  return limit;
}
