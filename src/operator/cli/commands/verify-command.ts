import { Argument, type Command } from '@commander-js/extra-typings';
import { retentionMs } from '../../../base/config/config.ts';
import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import { describeDamage, RESTORE_EVENTS } from '../../../event-store/damage.ts';
import { assertViewFits } from '../../../event-store/store-identity.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { verifyAccounts } from '../../accounts/verify-accounts.ts';
import { readId, requireRange } from '../../answers/filters.ts';
import { lagAfter } from '../../answers/follower.ts';
import { type Verified, verify } from '../../verify/verify.ts';
import { command, type Session } from '../command/command.ts';
import { currentAccounts, requireKnown } from '../command/known-names.ts';
import * as option from '../command/options.ts';

const syntax = (it: Command) =>
  it
    .addArgument(new Argument('[what]', 'only one of them').choices(['accounts', 'view', 'deliveries']))
    .option('--account <id>', 'only this account and its transactions', readId)
    .addOption(option.since('recorded'))
    .addOption(option.until('recorded'))
    .option('--explain', 'name each transaction that a key is not owed, and why, on standard error')
    .option('--repair', 'repair the differences')
    .option('--resend-unknown', 'with --repair: rebuild a lost delivery log; receivers may get events twice');
type VerifyOptions = ReturnType<ReturnType<typeof syntax>['opts']>;

const NOT_JUDGED = `Nothing that depends on the damaged events was judged or repaired. To restore them, ${RESTORE_EVENTS}`;

export const addVerifyCommand = command({
  name: 'verify',
  summary: 'check that the rows of accounts, the view and the deliveries, or one of them, match the events',
  example: 'fuel verify deliveries --account 7 --since 2026-09-01T00:00:00Z --repair',
  syntax,
  changes: ({ repair }) => repair === true,
  check: ([what], options) => requireSense(what, options),
  async work(session, [what], options) {
    const { out } = session;
    if (what === 'accounts') return verifyOnlyAccounts(session, options);
    const isWithAccounts = (options.since ?? options.until) === undefined; // times select transactions
    const accounts = what === undefined && isWithAccounts ? await tellAccounts(session, options) : undefined;
    const found = await verifySides(session, what, options);
    for (const each of found.damage) out.note(`damaged: ${describeDamage(each)}`);
    const view = found.view && (await tellView(session, found.view, options));
    const deliveries = found.deliveries && tellDeliveries(session, found, options);
    const damaged = found.damage.length + (found.view?.unreadable.length ?? 0);
    const { owed = 0, not_judged = 0, missing = 0, surplus = 0 } = deliveries ?? {};
    if ((view?.checked ?? 0) + owed + not_judged === 0) await requireKnown(session, options);
    out.answer({
      ...(accounts && { accounts: { checked: accounts.checked, differences: accounts.differences } }),
      ...(view && { view }),
      ...(deliveries && { deliveries }),
      ...(damaged > 0 && { damaged }),
    });
    if (damaged > 0) out.note(NOT_JUDGED);
    const differing = (accounts?.differences ?? 0) + (view?.differences ?? 0) + missing + surplus;
    return differing + damaged === 0 ? 0 : 1;
  },
});

function requireSense(what: string | undefined, options: VerifyOptions): void {
  if (options.resendUnknown && !options.repair) throw option.usage('--resend-unknown needs --repair');
  if (what === 'accounts' && (options.since ?? options.until) !== undefined)
    throw option.usage('--since and --until select transactions, so they do not go with accounts');
  if (options.resendUnknown && what !== undefined && what !== 'deliveries')
    throw option.usage(`--resend-unknown rebuilds the delivery log, so it does not go with ${what}`);
  if (options.explain && what !== undefined && what !== 'deliveries')
    throw option.usage(`--explain is about deliveries, so it does not go with ${what}`);
  requireRange(options);
}

async function verifyOnlyAccounts(session: Session, options: VerifyOptions): Promise<number> {
  const { out } = session;
  const { damage, ...accounts } = await tellAccounts(session, options);
  for (const each of damage) out.note(`damaged: ${describeDamage(each)}`);
  if (accounts.differences === 0) await requireKnown(session, { account: options.account });
  out.answer({ accounts, ...(damage.length > 0 && { damaged: damage.length }) });
  if (damage.length > 0) out.note(NOT_JUDGED);
  return accounts.differences + damage.length === 0 ? 0 : 1;
}

/** Names each account that differs on a line. */
async function tellAccounts(session: Session, { account: accountId, repair }: VerifyOptions) {
  const { engines, clock, author, out } = session;
  const { checked, differences, remaining, damage } = await verifyAccounts({
    store: engines.store(),
    tables: await currentAccounts(session),
    clock,
    author,
    accountId,
    repair: repair === true,
    onProgress: (count) => out.progress(`${count} accounts`),
  });
  for (const { accountId: id, kind } of differences) out.note(`accounts: account ${id} is ${kind}`);
  if (repair && differences.length > 0)
    out.note(`accounts: repaired ${differences.length - remaining.length} of ${differences.length}`);
  return { checked, differences: remaining.length, damage };
}

async function verifySides(
  { config, engines, clock, author, out }: Session,
  what: string | undefined,
  { account: accountId, since: sinceMs, until: untilMs, explain, repair, resendUnknown }: VerifyOptions,
): Promise<Verified> {
  const [store, view] = [engines.store(), () => engines.view()];
  const sides = (['view', 'deliveries'] as const).filter((side) => what === undefined || what === side);
  if (sides.includes('view')) await assertViewFits(await view().checkpoint(), store, VIEW_NAME);
  return verify({
    store,
    view,
    queue: () => engines.queue(),
    clock,
    author,
    sides,
    repair: repair === true,
    environment: config.FUEL_ENVIRONMENT,
    retentionMs: retentionMs(config),
    scope: { accountId, sinceMs, untilMs },
    lostLog: resendUnknown ? 'rebuild' : 'refuse',
    onProgress: (events) => out.progress(`${events} events`),
    ...(explain && {
      onNotOwed: (transactionId, key, reason) =>
        out.note(`deliveries: transaction ${transactionId} is not owed to key ${key}: ${reason}`),
    }),
  });
}

/** Names each difference on a line. */
async function tellView(
  { engines, clock, out }: Session,
  { checked, differences, unreadable, upTo, remaining }: NonNullable<Verified['view']>,
  { repair }: VerifyOptions,
) {
  const place = {
    prefixes: [TRANSACTION_STREAMS],
    after: (await engines.view().checkpoint())?.position ?? 0,
  };
  const { lag_events: behind } = await lagAfter({ store: engines.store(), clock }, place);
  if (behind !== 0)
    out.note(`view: ${behind ?? 'many'} events behind the log, so it was judged up to position ${upTo}`);
  for (const event of unreadable) out.note(`view: ${describeDamage(event)}, and the view shows what it was`);
  for (const { transactionId, kind } of differences)
    out.note(`view: transaction ${transactionId} is ${kind}`);
  if (repair && differences.length > 0)
    out.note(`view: repaired ${differences.length - remaining.length} of ${differences.length}`);
  return { checked, differences: remaining.length };
}

function tellDeliveries({ out }: Session, { deliveries, isLogLost }: Verified, { repair }: VerifyOptions) {
  const { owed, states, missing, surplus, notOwed, notJudged, stored, sent } = deliveries as NonNullable<
    Verified['deliveries']
  >;
  for (const [list, what] of [[isLogLost ? [] : missing, 'missing'] as const, [surplus, 'surplus'] as const])
    for (const { id, prefix, transactionId } of list)
      out.note(`deliveries: ${id} of transaction ${transactionId} to key ${prefix} is ${what}`);
  if (isLogLost)
    out.note(`deliveries: the log was lost, so receivers may see ${sent} deliveries for the second time`);
  if (repair && missing.length > 0) out.note(`deliveries: stored ${stored} that were missing`);
  const { delivered, pending, failed, withdrawn } = states;
  return {
    owed,
    delivered,
    pending: pending + sent,
    failed,
    withdrawn: withdrawn + stored - sent,
    missing: missing.length - stored,
    surplus: surplus.length,
    not_judged: notJudged,
    not_owed: Object.fromEntries([...notOwed].sort(([, a], [, b]) => b - a)),
  };
}
