import { onTestFinished } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import type { AccountEvent } from '../../../src/domain/account-events.ts';
import { deliveryId } from '../../../src/push/message/envelope.ts';
import type { Delivery } from '../../../src/push/queue/delivery.ts';
import { PREFIX } from '../accounts/account-samples.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { settle } from './fake-alarm-clock.ts';
import { PushMachine, READY } from './push.ts';
import type { CommitWatcher } from './store-of-process.ts';

export const id = (transactionId: number, prefix = PREFIX): string => deliveryId(prefix, transactionId);

/**
 * A machine with account 7 ready and a process running, closed when the test is over. `onCommit`: see `PushMachine`.
 */
export async function pushMachine({
  events = [],
  onCommit,
}: {
  readonly events?: readonly AccountEvent[];
  readonly onCommit?: CommitWatcher;
} = {}): Promise<PushMachine> {
  const machine = new PushMachine(temporaryFolder());
  onTestFinished(() => machine.close());
  if (onCommit !== undefined) machine.onCommit = onCommit;
  await machine.account(...READY, ...events);
  machine.start();
  await settle();
  return machine;
}

/** Returns the delivery of a transaction from the log. Throws if there is none. */
export async function deliveryOf(
  machine: PushMachine,
  transactionId: number,
  prefix = PREFIX,
): Promise<Delivery> {
  const found = await machine.queue.find(id(transactionId, prefix));
  if (found === undefined) throw new Error(`no delivery of transaction ${transactionId}`);
  return found;
}

/** Makes commits of the given name wait from `close` until `open`. */
export class CommitGate {
  /** How many commits have come to the gate since it was closed. */
  waiting = 0;
  #name: string | undefined;
  #opened = Promise.withResolvers<void>();

  readonly onCommit: CommitWatcher = async (name, _args, commit) => {
    if (name === this.#name) {
      this.waiting += 1;
      await this.#opened.promise;
    }
    return commit();
  };

  close(name: string): void {
    this.#name = name;
    this.waiting = 0;
    this.#opened = Promise.withResolvers<void>();
  }

  open(): void {
    this.#name = undefined;
    this.#opened.resolve();
  }
}

/** The error of a queue whose store can't be reached. */
export function unavailable(): FuelError {
  return new FuelError('STORE_UNAVAILABLE', 'the store cannot be reached');
}
