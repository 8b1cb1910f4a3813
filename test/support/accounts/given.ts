import { expect } from 'vitest';
import { type AccountCommand, decide } from '../../../src/domain/account-commands.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { foldAccount } from './evolve.ts';

/** `given(events).when(command).thenEvents(events)`: the events of account 7's stream, all recorded at 1,000 ms. */
export function given(...history: readonly AccountEvent[]) {
  const account = foldAccount(history.map((event) => ({ event, atMs: 1_000 })));
  return {
    when(command: AccountCommand) {
      const decision = decide(command, account);
      return {
        thenEvents: (...events: readonly AccountEvent[]) =>
          expect(decision).toEqual({ kind: 'events', events }),
        thenUnchanged: () => expect(decision).toEqual({ kind: 'unchanged' }),
        thenRefused: (reason: RegExp) =>
          expect(decision).toEqual({ kind: 'refused', reason: expect.stringMatching(reason) }),
      };
    },
  };
}
