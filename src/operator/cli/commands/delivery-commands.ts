import { type Command, Option } from '@commander-js/extra-typings';
import { FuelError } from '../../../base/errors.ts';
import { pause } from '../../../base/pause.ts';
import { EARLIEST_MS, formatDateTime, LATEST_MS } from '../../../domain/values/date-time.ts';
import { SHOWN_STATES, type Shown, storedFilter } from '../../../push/held.ts';
import type { DeliverySummary } from '../../../push/queue/delivery.ts';
import { attemptAnswer, deliveryAnswer, withHeldReasons } from '../../answers/delivery.ts';
import { deliveryFilter, readId, requireRange } from '../../answers/filters.ts';
import { readPrefix } from '../../answers/names.ts';
import { recordAnswer } from '../../answers/transaction.ts';
import { DeliveryChanges, type ReadShown } from '../../deliveries/delivery-changes.ts';
import { listUnsent } from '../../deliveries/list-unsent.ts';
import {
  cancelRedelivery,
  countRedeliverable,
  type KeyRedelivery,
  redeliverByIds,
  redeliverOfKey,
} from '../../deliveries/redeliver.ts';
import { command, deliveryContext, noun, type Session, unlessDryRun } from '../command/command.ts';
import { accountOf, knownKey, requireKnown } from '../command/known-names.ts';
import { longWork } from '../command/long-work.ts';
import * as option from '../command/options.ts';
import { TRANSACTION_COLUMNS } from './records/transaction-commands.ts';

const DEFAULT_LIMIT = 50;
const MAX_LISTED = 1_000;
const FOLLOW_MS = 500;

/** The members of a line. */
const DELIVERY_COLUMNS = [
  'id',
  'state',
  'key',
  'account',
  'transaction_id',
  'type',
  'created_at',
  'reason',
  'due_at',
];

const listSyntax = (it: Command) =>
  it
    .option('--key <prefix>', 'only deliveries to this key', readPrefix)
    .option('--account <id>', 'only deliveries of this account', readId)
    .option('--transaction <id>', 'only deliveries of this transaction', readId)
    .addOption(new Option('--state <state>', 'only deliveries in this state').choices(SHOWN_STATES))
    .addOption(option.since('created'))
    .addOption(option.until('created'))
    .option(
      '--limit <n>',
      `at most this many, up to ${MAX_LISTED}`,
      option.readUpTo(MAX_LISTED),
      DEFAULT_LIMIT,
    )
    .option('--after <id>', 'continue after this delivery', String)
    .option('--follow', 'also print new and changed deliveries, until interrupted or --until')
    .option('--unsent', 'list the transactions created in this time that were not sent to --key, and why');
type ListOptions = ReturnType<ReturnType<typeof listSyntax>['opts']>;

const list = command({
  name: 'list',
  summary: 'list deliveries, newest first',
  example: 'fuel delivery list --account 7 --state failed --since 2026-09-01',
  syntax: listSyntax,
  lists: {
    what: 'deliveries',
    csv: ({ unsent }) => (unsent ? [...TRANSACTION_COLUMNS, 'reason'] : DELIVERY_COLUMNS),
  },
  async work(session, _, options) {
    if (options.unsent) return printUnsent(session, options);
    const { engines } = session;
    const filter = deliveryFilter(options);
    if (options.follow && options.after !== undefined) {
      throw option.usage('--follow shows the newest deliveries, so it does not go with --after');
    }
    // A missing delivery log is read as empty, and would stay empty while this command follows it.
    if (options.follow && (await engines.state('queue')) === 'missing')
      throw new FuelError('REFUSED', 'There is no delivery log to follow yet. Start `fuel serve`');
    const queue = engines.queue();
    const after = options.after === undefined ? undefined : await queue.find(options.after);
    if (options.after !== undefined && after === undefined) {
      throw new FuelError(
        'REFUSED',
        `No delivery ${options.after} to continue after. See \`fuel delivery list\``,
      );
    }
    const read: ReadShown = async (page) => {
      const parts = { queue, rows: engines.accounts(), nowMs: session.clock.now() };
      const { deliveries, next } = await queue.page(await storedFilter(filter, parts), page);
      return { deliveries: await withReasons(session, deliveries), next };
    };
    const changes = options.follow && new DeliveryChanges(read);
    const deliveries = changes
      ? (await changes.look()).slice(-options.limit).reverse()
      : (await read({ limit: options.limit, after })).deliveries;
    if (deliveries.length === 0) await requireKnown(session, options);
    await print(session, deliveries);
    if (changes) await follow(session, changes, filter.untilMs);
  },
});

const show = command({
  name: 'show',
  summary: "show a delivery with its attempts and the receiver's answers",
  example: 'fuel delivery show 0e6c1a5c-6c0f-5f6e-9a53-1d2f4a7d9b10',
  syntax: (it) => it.argument('<id>', 'the delivery'),
  async work(session, [id]) {
    const { engines, out } = session;
    const found = await engines.queue().find(id);
    const [delivery] = await withReasons(session, found === undefined ? [] : [found]);
    if (delivery === undefined) {
      throw new FuelError('REFUSED', `No delivery ${id}. See \`fuel delivery list\``);
    }
    const attempts = delivery.attempts.map(attemptAnswer);
    out.answer({ ...deliveryAnswer(delivery), attempts }, { id: 'delivery' });
  },
});

/** The options that go with each way to say which deliveries are meant. */
const REDELIVER_FORMS = {
  ids: ['force'],
  failed: ['key', 'failed', 'since', 'until', 'dryRun'],
  delivered: ['key', 'delivered', 'since', 'until', 'dryRun'],
  cancel: ['key', 'cancel', 'reason'],
} as const;

const redeliver = command({
  name: 'redeliver',
  summary:
    'resend deliveries by id, or all failed or successful ones of a key (50 per second); ids stay the same',
  example: 'fuel delivery redeliver --failed --key a1b2c3d4e5 --since 7d',
  syntax: (it) =>
    it
      .argument('[id...]', 'the deliveries')
      .option('--force', 'also redeliver deliveries that succeeded')
      .option('--failed', 'all failed deliveries of --key')
      .option('--delivered', 'all successful deliveries of --key')
      .option('--key <prefix>', 'the key, with --failed, --delivered or --cancel', readPrefix)
      .addOption(option.since('with --key: created'))
      .addOption(option.until('with --key: created'))
      .option('--dry-run', 'with --key: only count what would be sent')
      .option('--cancel', 'cancel redeliveries for --key that are still pending'),
  changes: unlessDryRun,
  asksWhy: ({ cancel }) => cancel === true,
  reasonFor: 'with --cancel',
  check([ids], { json: _, actor: __, wait: ___, ...options }: Readonly<Record<string, unknown>>) {
    const given = Object.keys(options);
    const form =
      ids.length > 0 ? 'ids' : given.includes('cancel') ? 'cancel' : options.failed ? 'failed' : 'delivered';
    const fitting: readonly string[] = REDELIVER_FORMS[form];
    const isWhole = form === 'ids' || (given.includes('key') && given.includes(form));
    if (isWhole && given.every((name) => fitting.includes(name))) return;
    throw option.usage(
      'Give ids of deliveries (with --force if needed), or --key with one of --failed, --delivered and --cancel',
    );
  },
  async work(session, [ids], { key, since, until, force = false, failed, dryRun, cancel, reason }) {
    requireRange({ since, until });
    const { engines, writer, out } = session;
    const parts = { writer: writer(), queue: engines.queue() };
    if (key === undefined)
      return longWork(session, (long) => redeliverByIds(ids, force, { ...parts, ...long }), {
        names: NAMES,
        next: ({ redelivered }) => (redelivered > 0 ? `fuel delivery show ${ids[0]}` : undefined),
      });
    const of = { accountId: (await knownKey(session, key)).accountId, prefix: key };
    if (cancel) {
      const cancelled = await cancelRedelivery({ ...of, reason }, parts);
      out.result({ cancelled }, `Cancelled the redeliveries for key ${key} that were pending (${cancelled})`);
      return 0;
    }
    const which = failed ? 'failed' : 'delivered';
    const range = { ...of, sinceMs: since ?? null, untilMs: until ?? null, which } as const;
    if (!dryRun) return redeliverKey(session, range);
    const deliveries = await countRedeliverable(range, { ...parts, signal: session.signal });
    out.answer({ deliveries });
    return 0;
  },
});

export const addDeliveryCommands = noun({
  name: 'delivery',
  summary: 'list webhook deliveries with their attempts, and resend them',
  example: 'fuel delivery list --key a1b2c3d4e5 --state failed',
  commands: [list, show, redeliver],
});

/** Prints the transactions that were not pushed, and that the customer therefore has to pull. */
async function printUnsent(
  session: Session,
  { key, since, until, limit, ...others }: ListOptions,
): Promise<void> {
  const { account, transaction, state, after, follow } = others;
  if (key === undefined || (account ?? transaction ?? state ?? after ?? follow) !== undefined) {
    throw option.usage('--unsent needs --key, and otherwise goes only with --since, --until and --limit');
  }
  requireRange({ since, until });
  const { accountId } = await knownKey(session, key);
  const of = { accountId, prefix: key, fromMs: since ?? EARLIEST_MS, toMs: until ?? LATEST_MS };
  const parts = { ...deliveryContext(session), view: session.engines.view() };
  let printed = 0;
  for await (const { row, reason } of listUnsent(of, parts)) {
    await session.out.row({ ...recordAnswer(accountId, row), reason }, { id: 'transaction' });
    printed += 1;
    if (printed === limit) return;
  }
}

/** Prints what is new or has changed, until interrupted or until the end of the range. */
async function follow(
  session: Session,
  changes: DeliveryChanges,
  untilMs = Number.POSITIVE_INFINITY,
): Promise<void> {
  const { clock, signal } = session;
  while (clock.now() <= untilMs) {
    await pause(FOLLOW_MS, signal);
    if (signal.aborted) return;
    await print(session, await changes.look());
  }
}

async function print(session: Session, deliveries: readonly Shown[]): Promise<void> {
  for (const delivery of deliveries) await session.out.row(deliveryAnswer(delivery), { id: 'delivery' });
}

function withReasons<T extends DeliverySummary>(
  session: Session,
  deliveries: readonly T[],
): Promise<Shown<T>[]> {
  return withHeldReasons(deliveries, accountOf(session), session.clock.now());
}

const NAMES = { unchanged: 'already pending', left_out: 'left out' };

async function redeliverKey(session: Session, of: KeyRedelivery): Promise<number> {
  const { engines, writer } = session;
  const parts = { writer: writer(), queue: engines.queue() };
  let oldestAtMs: number | undefined;
  const onPage = (createdAtMs: number): void => {
    oldestAtMs = createdAtMs;
  };
  return longWork(session, (long) => redeliverOfKey(of, { ...parts, ...long, onPage }), {
    names: NAMES,
    next: ({ redelivered }) =>
      redelivered > 0 ? `fuel delivery list --key ${of.prefix} --state failed` : undefined,
    again: () =>
      of.which === 'failed' || oldestAtMs === undefined
        ? 'run the same command again'
        : `run it again with --until ${formatDateTime(oldestAtMs)}`,
  });
}
