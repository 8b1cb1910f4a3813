import type { Mutant } from './list.ts';

export const CLOCKS_AND_PACE: readonly Mutant[] = [
  {
    name: 'claims and attempts that a wrong clock puts off',
    file: 'src/push/log/claim.ts',
    from: 'find([1], MAX_CORRECTED, { from: nowMs + leaseMs + 1 })',
    to: 'find([1], MAX_CORRECTED, { from: Infinity })',
  },
  {
    name: 'a removal that trusts every clock',
    file: 'src/event-store/reads.ts',
    from: 'const MAX_AHEAD_MS = (23 / 24) * DAY_MS;',
    to: 'const MAX_AHEAD_MS = 1_000 * DAY_MS;',
  },
  {
    name: 'lanes that are not looked at again after a wrong clock',
    file: 'src/push/dispatch/lane-rows.ts',
    from: ' || untilMs > nowMs + REMEMBERED_MS;',
    to: ';',
  },
  {
    name: 'a receiver that is not waited for when it asks for it',
    file: 'src/push/pace/lane-rate.ts',
    from: '    if (this.isHeld(nowMs)) return 0;',
    to: '',
  },
  {
    name: 'a retry that comes before the time that was asked for',
    file: 'src/push/dispatch/attempt.ts',
    from: 'Math.max(waitMs, askedMs ?? 0)',
    to: 'waitMs',
  },
  {
    name: 'every process works on every host',
    file: 'src/push/pace/pace.ts',
    from: 'if (!this.#options.owners.owns(host.name)) return 0;',
    to: '',
  },
  {
    name: 'a host whose losses do not narrow it',
    file: 'src/push/pace/request-limit.ts',
    from: '    this.#set(this.#value - 1, nowMs);',
    to: '    this.#set(this.#value, nowMs);',
  },
  {
    name: 'a claim that is trusted however long it took',
    file: 'src/push/dispatch/lease.ts',
    from: '(this.#sinceMs[n] ?? 0) < LEASE_MS / 2',
    to: '(this.#sinceMs[n] ?? 0) < 100 * LEASE_MS',
  },
  {
    name: 'a claim that outlasts its process by a minute',
    file: 'src/push/dispatch/lease.ts',
    from: 'export const LEASE_MS = 5_000;',
    to: 'export const LEASE_MS = 60_000;',
  },
  {
    name: 'a lane that nobody looks at again when the pace of its receiver allows it',
    file: 'src/push/dispatch/dispatcher.ts',
    from: 'return Math.min(Math.max(nextAtMs, soonestMs), clock.now() + waitMs);',
    to: 'return Math.max(nextAtMs, soonestMs);',
  },
  {
    name: 'a lease that ignores the version',
    file: 'src/push/log/claim.ts',
    from: 'return change(DELIVERIES, owedOf(delivery), next, { as: { version } });',
    to: 'return change(DELIVERIES, owedOf(delivery), next);',
  },
  {
    name: 'a leased delivery that is sent although it has ended meanwhile',
    file: 'src/push/log/claim.ts',
    from: 'lease === token && !withdrawn.has(transaction_id)',
    to: 'true',
  },
  {
    name: 'an attempt whose end the pace is not told',
    file: 'src/push/dispatch/dispatcher.ts',
    from: 'if (made !== undefined) this.#pace.end(slot, steady.now(), made);',
    to: '',
  },
  {
    name: 'a choice that relies on another one whose deliveries have not started',
    file: 'src/push/dispatch/dispatcher.ts',
    from: 'await this.#leasing.run(() => this.#store(some));',
    to: 'await this.#store(some);',
  },
  {
    name: 'a switch-off that is waited for until the process ends',
    file: 'src/push/health/health-watch.ts',
    from: '    if (!isSame) this.#switchingOff.delete(prefix);\n    return isSame;',
    to: '    return this.#switchingOff.has(prefix);',
  },
];
