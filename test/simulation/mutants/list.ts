import { ACCOUNT_ROWS } from './account-rows.ts';
import { CLOCKS_AND_PACE } from './clocks-and-pace.ts';

/** A fault to put into the code. The replaced text occurs there once. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Faults that were found in drafts before, and similar ones. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'an acknowledgement before the commit',
    file: 'src/push/fan-out/run-fan-out.ts',
    from: 'const work = async () => acknowledge(consumer, await fanOutEach(fanOut, events), log);',
    to: 'const work = async () => { await consumer.ack(events); await acknowledge(consumer, await fanOutEach(fanOut, events), log); };',
  },
  {
    name: 'a report without the guard of its claim',
    file: 'src/push/queue/next-state.ts',
    from: 'if (!isClaimedBy(change, before)) return endedMeanwhile(before, attempt);',
    to: '',
  },
  {
    name: 'a lease renewed too late',
    file: 'src/base/coordination/while-holding.ts',
    from: 'Math.max(1_000, ttlMs / 4)',
    to: 'Math.max(8_000, ttlMs / 4)',
  },
  {
    name: 'a failure that counts twice',
    file: 'src/push/queue/failure-streak.ts',
    from: 'failedInARow: failures.length,',
    to: 'failedInARow: 10 * failures.length,',
  },
  {
    name: 'fan-out without the position of the event',
    file: 'src/push/fan-out/decide-event.ts',
    from: 'const place = { accountId: row.accountId, position: firstPosition(event) };',
    to: 'const place = { accountId: row.accountId, position: Number.MAX_SAFE_INTEGER };',
  },
  {
    name: 'a position resumed behind the next event',
    file: 'src/event-store/follow.ts',
    from: 'after: await checkpoint(),',
    to: 'after: (await checkpoint()) + 1,',
  },
  {
    name: 'the wait of the next attempt',
    file: 'src/push/dispatch/retry-schedule.ts',
    from: 'const delayMs = delaysMs[attemptNumber - 1];',
    to: 'const delayMs = delaysMs[attemptNumber];',
  },
  {
    name: 'a webhook switched off after one day',
    file: 'src/push/health/health.ts',
    from: 'const SWITCH_OFF = { failedInARow: 50, failingForMs: 3 * DAY_MS };',
    to: 'const SWITCH_OFF = { failedInARow: 50, failingForMs: DAY_MS };',
  },
  {
    name: 'a void that withdraws nothing',
    file: 'src/push/fan-out/fan-out.ts',
    from: 'if (withdrawn.length > 0)',
    to: 'if (withdrawn.length < 0)',
  },
  {
    name: 'held deliveries that are never resumed',
    file: 'src/push/dispatch/account-work.ts',
    from: "if (access.open) await queue.change({ kind: 'resume', accountId }, nowMs);",
    to: '',
  },
  {
    name: 'a lane that is not ended',
    file: 'src/push/dispatch/account-work.ts',
    from: 'await queue.change(next, nowMs);',
    to: "if (next.kind !== 'end lane') await queue.change(next, nowMs);",
  },
  {
    name: 'a key that is off is served',
    file: 'src/pull/transactions.ts',
    from: '|| !caller.proven || !caller.known.key.active)',
    to: '|| !caller.proven)',
  },
  {
    name: 'a page that begins with the wrong place',
    file: 'src/pull/transactions.ts',
    from: 'const last = page.rows.at(-1);',
    to: 'const last = page.rows.at(-2) ?? page.rows.at(-1);',
  },
  {
    name: 'an address that is not judged',
    file: 'src/push/sender/sender.ts',
    from: 'const forbidden = parts.allowPrivate ? undefined : forbiddenAmong(addresses);',
    to: 'const forbidden = parts.allowPrivate ? undefined : forbiddenAmong([]);',
  },
  {
    name: 'a name that is kept for hours',
    file: 'src/push/sender/name-lookup.ts',
    from: 'const KEPT_MS = 20_000;',
    to: 'const KEPT_MS = 20_000_000;',
  },
  {
    name: 'an attempt that waits for ten times as long',
    file: 'src/push/sender/timed-send.ts',
    from: 'const TIME_LIMIT_MS = 500;',
    to: 'const TIME_LIMIT_MS = 5_000;',
  },
  {
    name: 'a number for keys that must not see it',
    file: 'projections/deliveries.ts',
    from: 'mobileNumber: key.driverMobile });',
    to: 'mobileNumber: true });',
  },
  {
    name: 'an erasure that leaves the row',
    file: 'src/operator/erase/erase-transaction.ts',
    from: '  await view.replace(id, [erasureOf(id)]);\n',
    to: '',
  },
  {
    name: 'a checkpoint before what it covers',
    file: 'src/pull/view/projector.ts',
    from: 'return await view.apply(changes, whole);',
    to: 'await view.apply([], whole); return await view.apply(changes, whole);',
  },
  {
    name: 'a process that is ready before it is known to the others',
    file: 'src/service/ops/standing.ts',
    from: 'if (isKnown && standing.hasReached(position)) return true;',
    to: 'return true;',
  },
  {
    name: 'an e-mail that is recorded and not sent',
    file: 'src/push/notices/notifier.ts',
    from: 'if (!this.#unrecorded.has(mail)) await this.#send(notice);',
    to: '',
  },
  {
    name: 'a streak that a success does not end',
    file: 'src/push/queue/failure-streak.ts',
    from: '{ ...streak, failures: [] }',
    to: 'streak',
  },
  {
    name: 'an old enabling that resets a streak at each start',
    file: 'src/push/dispatch/account-work.ts',
    from: 'await queue.change(next, nowMs);',
    to: "await queue.change(next.kind === 'enabled' ? { ...next, atMs: nowMs } : next, nowMs);",
  },
  {
    name: 'a stop that does not wait for outcomes',
    file: 'src/push/dispatch/dispatcher.ts',
    from: '    await Promise.all(this.#unreported);\n',
    to: '',
  },
  {
    name: 'outcomes that are dropped at the end',
    file: 'src/push/dispatch/report-batch.ts',
    from: 'while (this.#waiting.size > 0) await this.#record();',
    to: '',
  },
  {
    name: 'a claim that is shorter than an attempt',
    file: 'src/push/dispatch/lease.ts',
    from: 'export const LEASE_MS = 5_000;',
    to: 'export const LEASE_MS = 300;',
  },
  {
    name: 'an attempt without a look at the access',
    file: 'src/push/dispatch/attempt.ts',
    from: 'if (!accessOf(entry?.account, atMs).open) return hold();',
    to: '',
  },
  {
    name: "a profile's beginning that nobody waits for",
    file: 'src/push/dispatch/account-work.ts',
    from: '      if (opensAtMs <= nowMs) this.#accounts.add(accountId);',
    to: '      if (opensAtMs + 86_400_000 <= nowMs) this.#accounts.add(accountId);',
  },
  {
    name: 'deliveries that are removed after a tenth of the retention',
    file: 'src/push/retention.ts',
    from: "{ kind: 'purge', retentionMs, limit: BATCH }",
    to: "{ kind: 'purge', retentionMs: retentionMs / 10, limit: BATCH }",
  },
  {
    name: 'deliveries that are kept for ever',
    file: 'src/push/retention.ts',
    from: "const batch = await queue.change({ kind: 'purge', retentionMs, limit: BATCH }, nowMs);",
    to: 'const batch = 0;',
  },
  {
    name: 'an erasure that leaves the delivery',
    file: 'src/operator/erase/erase-transaction.ts',
    from: "await queue.change({ kind: 'erase', transactionId: id },",
    to: "await queue.change({ kind: 'withdraw', transactionIds: [id] },",
  },
  {
    name: 'a rebuild that is served before it has caught up',
    file: 'src/pull/view/build/rebuild.ts',
    from: 'if (!batch.caughtUp || until.aborted ||',
    to: 'if (until.aborted ||',
  },
  {
    name: 'a projector that ignores that its view was replaced',
    file: 'src/pull/view/projector.ts',
    from: "if (parked === 'reset') return { restartBecause: 'the view was reset' };",
    to: "if (parked === 'reset') return 'next';",
  },
  {
    name: 'events of the directory that are left out after a restart',
    file: 'src/accounts/directory/live-directory.ts',
    from: 'after: directory.position,',
    to: 'after: directory.position + (this.#loaded ? 1 : 0),',
  },
  {
    name: 'a seal that leaves out what came with the last batch',
    file: 'src/seals/sealer.ts',
    from: '    this.#waiting = [];\n    this.#sinceMs = undefined;',
    to: '    this.#waiting = this.#waiting.slice(-1);\n    this.#sinceMs = undefined;',
  },
  {
    name: 'an e-mail that is sent again after each retry',
    file: 'src/push/notices/notifier.ts',
    from: 'if (recorded.has(notice.audience)) continue;',
    to: '',
  },
  {
    name: 'an account as it is now, not as it was at the event',
    file: 'src/push/fan-out/decide-event.ts',
    from: 'const place = { accountId: row.accountId, position: firstPosition(event) };',
    to: 'const place = { accountId: row.accountId, position: firstPosition(event) + 40 };',
  },
  {
    name: 'a wait that ends before all processes have applied',
    file: 'src/operator/serve/wait-applied.ts',
    from: "if (behind.length === 0) return 'applied';",
    to: "return 'applied';",
  },
  {
    name: 'a directory that is ready before it has caught up',
    file: 'src/push/dispatch/dispatcher.ts',
    from: 'const isAhead = this.#options.directory.position < delivery.position;',
    to: 'const isAhead = false;',
  },
  {
    name: 'a listener that opens before access can be judged',
    file: 'src/service/service.ts',
    from: "if (has('api')) await Promise.race([whenReady(conditions, signal), parts.failed]);",
    to: '',
  },
  {
    name: 'a thread that is not asked to stop',
    file: 'src/service/threads/start-job.ts',
    from: '      asked.abort();\n',
    to: '',
  },
  {
    name: 'a start that does not wait for the directory',
    file: 'src/service/start-directory.ts',
    from: '  await Promise.race([live.whenCaughtUp, parts.failed, aborted(signal)]);\n',
    to: '',
  },
  {
    name: 'attempts that go on after their role has ended',
    file: 'src/service/roles/webhooks.ts',
    from: '    await dispatcher.stop();\n',
    to: '',
  },
  {
    name: 'a process that is taken for one that has left',
    file: 'src/service/process-report.ts',
    from: '    this.#schedule(HEARTBEAT_MS);',
    to: '    this.#schedule(4 * HEARTBEAT_MS);',
  },
  {
    name: 'a directory that does not tell how far it is',
    file: 'src/service/service.ts',
    from: "onMoved: (position) => report.moved('webhooks', position),",
    to: '',
  },
  {
    name: 'a lane that ends what was created since',
    file: 'src/push/dispatch/account-work.ts',
    from: "return { kind: 'end lane', prefix, reason: effect.reason, before: position };",
    to: "return { kind: 'end lane', prefix, reason: effect.reason };",
  },
  ...CLOCKS_AND_PACE,
  ...ACCOUNT_ROWS,
];
