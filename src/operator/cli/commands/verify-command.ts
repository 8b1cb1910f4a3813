import { FuelError } from '../../../base/errors.ts';
import { TRANSACTION_STREAMS } from '../../../domain/transaction-events.ts';
import { describeDamage, RESTORE_EVENTS } from '../../../event-store/damage.ts';
import type { Damage } from '../../../event-store/event-store.ts';
import type { Position } from '../../../event-store/recorded-event.ts';
import { assertViewFits } from '../../../event-store/store-identity.ts';
import { damagedEvents } from '../../../pull/view/parked-events.ts';
import { VIEW_NAME } from '../../../pull/view/projector.ts';
import { readStartedLog } from '../../../push/delivery-log.ts';
import { requireRange } from '../../answers/filters.ts';
import { lagAfter } from '../../answers/followers/follower.ts';
import { judgeInThreads, paysOff, type ThreadedJudges } from '../../serve/judge-in-threads.ts';
import { judgeWhileSearching } from '../../serve/judge-while-searching.ts';
import { threadsOfCommand } from '../../serve/threads.ts';
import { readLog, type VerifyScope } from '../../verify/read-log.ts';
import { repairDeliveries } from '../../verify/repair-deliveries.ts';
import { repairView } from '../../verify/repair-view.ts';
import { type DeliveryAgreement, DeliveryJudge } from '../../verify/verify-deliveries.ts';
import { verifyDirectory } from '../../verify/verify-directory.ts';
import { ViewJudge } from '../../verify/verify-view.ts';
import { command, type Session } from '../command/command.ts';
import { deliveryContext } from '../command/deliveries.ts';
import { requireKnown } from '../command/known-names.ts';
import { progressLine } from '../command/long-work.ts';
import * as option from '../command/options.ts';

const VERIFY = {
  account: option.id("this account's transactions"),
  ...option.sinceUntil('recorded'),
  explain: option.flag('name each transaction that a key is not owed, and why, on standard error'),
  repair: option.flag('repair what differs'),
  resendUnknown: option.flag('with --repair: rebuild a lost delivery log; receivers may get events twice'),
};
type VerifyOptions = option.Values<typeof VERIFY>;

export const addVerifyCommand = command({
  usage: 'verify [what]',
  summary: 'check that the view and the deliveries (or one of them) are what the events call for',
  example: 'fuel verify deliveries --account 7 --since 2026-09-01T00:00:00Z --repair',
  options: VERIFY,
  changes: ({ repair }) => repair === true,
  work: verify,
});

async function verify(session: Session, [what]: readonly string[], options: VerifyOptions): Promise<number> {
  if (what !== undefined && what !== 'view' && what !== 'deliveries') {
    throw option.usage(`${what} can't be verified: name view, deliveries, or nothing for both`);
  }
  if (options.resendUnknown && !options.repair) {
    throw option.usage('--resend-unknown goes with --repair');
  }
  if (options.resendUnknown && what === 'view') {
    throw option.usage('--resend-unknown rebuilds the delivery log: name deliveries, or nothing');
  }
  if (options.explain && what === 'view') {
    throw option.usage('--explain says why deliveries are not owed: name deliveries, or nothing');
  }
  requireRange(options);
  const { engines, out } = session;
  if (options.repair) await engines.bind();
  const run = new Verification(session, options);
  const { view, deliveries } = await run.judge(what);
  const viewCounts = view && (await run.view(view));
  const deliveryCounts = deliveries && (await run.deliveries(deliveries));
  const directory = what === undefined ? await run.directory() : undefined;
  const { unreadable = 0, ...shown } = viewCounts ?? {};
  const damaged = run.damage.length + unreadable;
  const document = {
    ...(directory?.differences && { directory }),
    ...(viewCounts && { view: shown }),
    ...(deliveryCounts && { deliveries: deliveryCounts }),
    ...(damaged > 0 && { damaged }),
  };
  const { owed = 0, not_judged = 0, missing = 0, surplus = 0 } = deliveryCounts ?? {};
  const judged = (directory?.checked ?? 0) + (viewCounts?.checked ?? 0) + owed + not_judged;
  if (judged === 0) await requireKnown(engines, options, { inLog: true });
  out.result(document, JSON.stringify(document, null, 2));
  if (damaged > 0) out.note(`what depends on them was neither judged nor repaired: ${RESTORE_EVENTS}`);
  const differing = (directory?.differences ?? 0) + (viewCounts?.differences ?? 0) + missing + surplus;
  return differing + damaged === 0 ? 0 : 1;
}

/** One run of the command. Each part names what differs, a line each, and repairs it where that is asked for. */
class Verification {
  readonly #session: Session;
  readonly #options: VerifyOptions;
  readonly #scope: VerifyScope;
  /** What of the event store is damaged. */
  damage: readonly Damage[] = [];
  /** The delivery log, or the one that replaces it where it is lost. */
  #log = { isLost: false, logStartedAtMs: 0 };

  constructor(session: Session, options: VerifyOptions) {
    const { account: accountId, since: sinceMs, until: untilMs } = options;
    this.#session = session;
    this.#options = options;
    this.#scope = { accountId, sinceMs, untilMs };
  }

  /** Has the log judged: by threads where that pays off. Explanations come in the order of the log, so by this one. */
  async judge(what: string | undefined): Promise<ThreadedJudges> {
    const { engines, out } = this.#session;
    const store = engines.store();
    const head = await store.head();
    const isShared = engines.embedded.includes('store') && !this.#options.explain && paysOff(head);
    const searching = damagedEvents(store, () => engines.view());
    const judge = (damage: readonly Damage[]) =>
      this.#judged(what, { damage, inThreads: isShared ? head : 0 });
    const { damage, judges } = isShared
      ? await judgeWhileSearching(searching, judge)
      : { damage: await searching, judges: undefined };
    for (const each of damage) out.note(`damaged: ${describeDamage(each)}`);
    this.damage = damage;
    return judges ?? judge(damage);
  }

  async #viewJudge(damage: readonly Damage[]): Promise<ViewJudge> {
    const { engines } = this.#session;
    const [store, view] = [engines.store(), engines.view()];
    await assertViewFits(await view.checkpoint(), store, VIEW_NAME);
    return new ViewJudge({ store, view, damage, ...this.#scope });
  }

  async #deliveryJudge(damage: readonly Damage[]): Promise<DeliveryJudge> {
    const { out } = this.#session;
    const { store, queue } = deliveryContext(this.#session);
    const log = await queue.logId();
    const started = await readStartedLog(store);
    const lostLog = started !== undefined && started.id !== log.id ? started : undefined;
    if (lostLog !== undefined) refuseUnlessAskedFor(lostLog.id, this.#options);
    const logStartedAtMs = lostLog?.firstStartedAtMs ?? log.startedAtMs;
    this.#log = { isLost: lostLog !== undefined, logStartedAtMs };
    const explain = (transactionId: number, key: string, reason: string): void =>
      out.note(`deliveries: transaction ${transactionId} is not owed to key ${key}: ${reason}`);
    const onNotOwed = this.#options.explain ? explain : undefined;
    const context = { ...deliveryContext(this.#session), ...this.#scope, damage };
    return new DeliveryJudge({ ...context, logStartedAtMs, onNotOwed });
  }

  /** Threads judge up to the position `inThreads`, this one the rest. */
  async #judged(
    what: string | undefined,
    { damage, inThreads }: { readonly damage: readonly Damage[]; readonly inThreads: Position },
  ): Promise<ThreadedJudges> {
    const { engines, config } = this.#session;
    const view = what === 'deliveries' ? undefined : await this.#viewJudge(damage);
    const deliveries = what === 'view' ? undefined : await this.#deliveryJudge(damage);
    const progress = progressLine();
    const onProgress = (events: number): void => progress.show(`${events} events`);
    if (inThreads > 0) {
      const data = { scope: this.#scope, damage, withView: view !== undefined };
      const logStartedAtMs = deliveries && this.#log.logStartedAtMs;
      const options = { host: threadsOfCommand(config), logStartedAtMs, head: inThreads, onProgress };
      await judgeInThreads({ view, deliveries }, { ...data, ...options });
    }
    const rest = [view, deliveries].filter((judge) => judge !== undefined);
    const onRest = (events: number): void => onProgress(inThreads + events);
    await readLog(rest, { store: engines.store(), after: inThreads, onProgress: onRest });
    progress.end();
    return { view, deliveries };
  }

  async view(judge: ViewJudge) {
    const { engines, clock, out, writer } = this.#session;
    const [store, view] = [engines.store(), engines.view()];
    const { checked, differences, unreadable, upTo } = await judge.finish();
    const place = { prefixes: [TRANSACTION_STREAMS], after: (await view.checkpoint())?.position ?? 0 };
    const { lag_events: behind } = await lagAfter({ store, clock }, place);
    if (behind !== 0)
      out.note(`view: ${behind ?? 'many'} events behind the log: judged up to position ${upTo}`);
    for (const event of unreadable)
      out.note(`view: ${describeDamage(event)}, and the view shows what it was`);
    for (const { transactionId, kind } of differences)
      out.note(`view: transaction ${transactionId} is ${kind}`);
    const counts = { checked, differences: differences.length, unreadable: unreadable.length };
    if (!this.#options.repair || differences.length === 0) return counts;
    const remaining = await repairView(differences, { ...writer(), view });
    out.note(`view: repaired ${differences.length - remaining.length} of ${differences.length}`);
    return { ...counts, differences: remaining.length };
  }

  async deliveries(judge: DeliveryJudge) {
    const { author, out } = this.#session;
    const { isLost } = this.#log;
    const found = await judge.finish();
    const name = (list: DeliveryAgreement['missing' | 'surplus'], what: string): void => {
      for (const { id, prefix, transactionId } of list)
        out.note(`deliveries: ${id} of transaction ${transactionId} to key ${prefix} is ${what}`);
    };
    if (!isLost) name(found.missing, 'missing');
    name(found.surplus, 'surplus');
    if (!this.#options.repair) return agreementJson(found);
    const context = { ...deliveryContext(this.#session), author };
    const { stored, sent } = await repairDeliveries(found.missing, { newLog: isLost }, context);
    if (isLost)
      out.note(`deliveries: the log was lost: receivers may see ${sent} deliveries for the second time`);
    if (found.missing.length > 0) out.note(`deliveries: stored ${stored} that were missing`);
    const json = agreementJson(found);
    return {
      ...json,
      pending: json.pending + sent,
      withdrawn: json.withdrawn + stored - sent,
      missing: json.missing - stored,
    };
  }

  /** Printed only where it differs. Nothing to repair: a start replaces a stored directory that was changed. */
  async directory() {
    const { engines, clock, out } = this.#session;
    const parts = { store: engines.store(), stored: engines.directory(), clock };
    const { checked, differences } = await verifyDirectory(parts, this.#options.account);
    for (const difference of differences) out.note(`directory: ${difference}`);
    return { checked, differences: differences.length };
  }
}

function refuseUnlessAskedFor(lostLogId: string, options: VerifyOptions): void {
  if (options.resendUnknown === undefined) {
    throw new FuelError(
      'REFUSED',
      `the delivery log ${lostLogId} is gone, and with it what receivers have already: restore its backup, or ` +
        'run fuel verify deliveries --repair --resend-unknown, which may send them events for the second time',
    );
  }
  if ((options.account ?? options.since ?? options.until) !== undefined) {
    throw new FuelError('REFUSED', 'a lost delivery log is rebuilt as a whole: leave account and times out');
  }
}

function agreementJson({ owed, states, missing, surplus, notOwed, notJudged }: DeliveryAgreement) {
  const { delivered, pending, held, failed, withdrawn } = states;
  return {
    owed,
    delivered,
    pending,
    held,
    failed,
    withdrawn,
    missing: missing.length,
    surplus: surplus.length,
    not_judged: notJudged,
    not_owed: Object.fromEntries([...notOwed].sort(([, a], [, b]) => b - a)),
  };
}
