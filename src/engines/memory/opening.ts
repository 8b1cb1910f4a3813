import { FuelError } from '../../base/errors.ts';

/**
 * One opening of a store that others may have open too. `members` are methods that return promises, which begin in a later
 * step as those of every engine do, and other values. After `close` each call rejects with `STORE_CLOSED`.
 */
export function opening<T extends object>(
  name: string,
  members: T,
  onClose: () => void = () => undefined,
): T & { close(): Promise<void> } {
  let isClosed = false;
  const guarded = Object.entries(members).map(([member, value]) => {
    if (typeof value !== 'function') return [member, value];
    const call = async (...args: readonly unknown[]): Promise<unknown> => {
      if (isClosed) throw new FuelError('STORE_CLOSED', `${name} is closed`);
      await Promise.resolve();
      return value(...args);
    };
    return [member, call];
  });
  return {
    ...(Object.fromEntries(guarded) as T),
    async close() {
      if (isClosed) return;
      isClosed = true;
      onClose();
    },
  };
}
