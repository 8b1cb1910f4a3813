import fc from 'fast-check';
import type { Account } from '../../../src/domain/account.ts';
import { decide } from '../../../src/domain/account-commands.ts';
import { type AccountEvent, accountStream } from '../../../src/domain/account-events.ts';
import type { ModelEvent } from './account-model.ts';
import { onKey } from './account-samples.ts';
import { commandSequences } from './arbitrary-commands.ts';
import { evolve } from './evolve.ts';

const ACCOUNTS = [7, 8, 9];
const unreadable = { ok: false, reason: 'unknown event type Foo' } as const;

/** Events that no command causes: the service records these automatically, and may repeat them. */
const automatic = fc.constantFrom(
  ...(['WebhookDisabled', 'WebhookEnabled', 'KeySwitchedOff', 'WebhookRemoved'] as const),
);

const histories = fc
  .tuple(commandSequences, fc.array(fc.tuple(fc.nat(60), automatic), { maxLength: 6 }))
  .map(([commands, added]) => {
    let account: Account | undefined;
    const events: AccountEvent[] = [];
    for (const command of commands) {
      const decision = decide(command, account);
      for (const event of decision.kind === 'events' ? decision.events : []) {
        account = evolve(account, [event], 1_000);
        events.push(event);
      }
    }
    for (const [at, type] of added) events.splice(Math.min(at, events.length), 0, onPrefix(onKey(type)));
    return events;
  });

function onPrefix(event: AccountEvent): AccountEvent {
  return { ...event, data: { ...event.data, prefix: 'aaaaaaaaaa' } } as AccountEvent;
}

const faults = fc.array(fc.tuple(fc.nat(80), fc.constantFrom('unreadable', 'missing')), { maxLength: 2 });

/** Logs of a few accounts with alternating events, conflicting prefixes, and unreadable or missing events. */
export const accountLogs: fc.Arbitrary<ModelEvent[]> = fc
  .tuple(
    fc.tuple(...ACCOUNTS.map(() => fc.tuple(histories, faults))),
    fc.array(fc.nat(ACCOUNTS.length - 1), { minLength: 40, maxLength: 200, size: 'max' }),
  )
  .map(([streams, turns]) => {
    const waiting = streams.map(([events, faulty], index) =>
      streamOf(ACCOUNTS[index] ?? 0, events, new Map(faulty)),
    );
    const log: Omit<ModelEvent, 'position'>[] = [];
    for (const turn of turns) log.push(...(waiting[turn]?.splice(0, 1) ?? []));
    return [...log, ...waiting.flat()].map((event, index) => ({ ...event, position: 10 * (index + 1) }));
  });

function streamOf(id: number, events: readonly AccountEvent[], kinds: ReadonlyMap<number, string>) {
  return events.flatMap((event, revision): Omit<ModelEvent, 'position'>[] => {
    const kind = kinds.get(revision);
    if (kind === 'missing') return [];
    const own = { ...event, data: { ...event.data, account_id: id } } as AccountEvent;
    const decoded = kind === 'unreadable' ? unreadable : ({ ok: true, event: own, atMs: revision } as const);
    return [{ stream: accountStream(id), revision, decoded }];
  });
}
