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
    from: 'return { accountId, position: firstPosition(event) };',
    to: 'return { accountId, position: Number.MAX_SAFE_INTEGER };',
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
    name: 'lanes without access that stay so',
    file: 'src/push/dispatch/lane-rows.ts',
    from: 'return untilMs <= nowMs || untilMs > nowMs + REMEMBERED_MS;',
    to: 'return untilMs === 0;',
  },
  {
    name: 'a lane that is not ended',
    file: 'src/push/ends.ts',
    from: '  await queue.change({ ...end, ...only }, clock.now());\n',
    to: '',
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
    name: 'an enabling that resets a streak as of now',
    file: 'src/push/ends.ts',
    from: "await queue.change({ kind: 'enabled', prefix, atMs }, clock.now());",
    to: "await queue.change({ kind: 'enabled', prefix, atMs: clock.now() + 60_000 }, clock.now());",
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
    from: 'if (!access.open || isOff || key.webhook === null) return released(delivery);',
    to: 'if (isOff || key.webhook === null) return released(delivery);',
  },
  {
    name: "a profile's beginning that nobody waits for",
    file: 'src/push/dispatch/lane-rows.ts',
    from: "(state.kind === 'closed' ? state.opensAtMs : undefined) ?? Infinity;",
    to: 'Infinity;',
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
    from: 'return { accountId, position: firstPosition(event) };',
    to: 'return { accountId, position: firstPosition(event) + 40 };',
  },
  {
    name: 'a wait that ends before the rows have what was recorded',
    file: 'src/operator/serve/wait-applied.ts',
    from: "if (behind.length === 0) return 'applied';",
    to: "return 'applied';",
  },
  {
    name: 'an attempt that ignores what has ended its delivery',
    file: 'src/push/dispatch/attempt.ts',
    from: 'ended.position > delivery.position && delivery.cycle === 1',
    to: 'ended.position < 0',
  },
  {
    name: 'a start that does not wait for fresh rows',
    file: 'src/service/start-accounts.ts',
    from: '  await Promise.race([rows.untilFresh(signal), parts.failed]);\n',
    to: '',
  },
  {
    name: 'a thread that is not asked to stop',
    file: 'src/service/threads/start-job.ts',
    from: '      asked.abort();\n',
    to: '',
  },
  {
    name: 'webhooks that do not wait for fresh rows',
    file: 'src/service/roles/webhooks.ts',
    from: '    await rows.untilFresh(until);\n',
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
    from: 'await pause(REPORTS_EVERY_MS,',
    to: 'await pause(4 * REPORTS_EVERY_MS,',
  },
  {
    name: 'a process that never says that it is ready',
    file: 'src/service/service.ts',
    from: '  report.ready();\n',
    to: '',
  },
  {
    name: 'a lane that ends what was created since',
    file: 'src/push/ends.ts',
    from: "const end = { kind: 'end lane', prefix, reason: effect.reason, before: position } as const;",
    to: "const end = { kind: 'end lane', prefix, reason: effect.reason } as const;",
  },
  ...CLOCKS_AND_PACE,
  ...ACCOUNT_ROWS,
];
