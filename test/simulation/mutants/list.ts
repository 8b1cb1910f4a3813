/** A fault that is put into the code: the text that is replaced occurs there once. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Those that earlier rounds found in drafts, and their like. */
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
    from: 'return [{ when: claimedBy(report), set: due(dueAtMs), attempt }, endedMeanwhile(attempt)];',
    to: "return [{ when: { states: ['pending', 'held', 'failed', 'withdrawn', 'delivered'] }, set: due(dueAtMs), attempt }, endedMeanwhile(attempt)];",
  },
  {
    name: 'a lease renewed too late',
    file: 'src/base/coordination/while-holding.ts',
    from: 'const RENEW_EVERY_MS = 1_000;',
    to: 'const RENEW_EVERY_MS = 8_000;',
  },
  {
    name: 'a failure that counts twice',
    file: 'src/push/queue/failure-streak.ts',
    from: 'failedInARow: before.failedInARow + 1,',
    to: 'failedInARow: before.failedInARow + 10,',
  },
  {
    name: 'fan-out without the position of the event',
    file: 'src/push/fan-out/decide-event.ts',
    from: 'position: firstPosition(event) };\n  const decided',
    to: 'position: Number.MAX_SAFE_INTEGER };\n  const decided',
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
    from: 'await this.#options.queue.withdraw(classified.change.id, this.#options.clock.now());',
    to: '',
  },
  {
    name: 'held deliveries that are never resumed',
    file: 'src/push/dispatch/held-accounts.ts',
    from: 'if (access.open) await this.#resume(accountId, nowMs);',
    to: '',
  },
  {
    name: 'a lane that is not ended',
    file: 'src/push/dispatch/dispatcher.ts',
    from: "if (next.kind === 'end lane') await queue.endLane(next.prefix, next.reason, scheduler.now());",
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
    file: 'src/push/sender/sender.ts',
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
    from: '  await view.erase(id);\n',
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
];
