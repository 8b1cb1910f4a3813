import { createHmac, type Hmac } from 'node:crypto';
import type { RowDigest, RowsHead } from './rows.ts';

/** Keys that the rows are sealed with, derived from the master keys. */
export interface SealKeys {
  /** Those to check a seal with; none where there is no master key yet. */
  known(): readonly Buffer[];
  /** The one to seal with. */
  current(): Buffer;
}

/**
 * The HMAC-SHA256 over the checkpoint, and of every row its account, revision, position and digest, in the order of the
 * account ids. Rows of different moments are never sealed together, so none can be removed, or replaced by an older one.
 */
export class Sealing {
  readonly #hmacs: readonly Hmac[];

  /** Under each of the keys. */
  constructor(keys: readonly Buffer[], { version, storeId, position, anchor }: RowsHead) {
    const { position: at, stream, revision, eventId } = anchor;
    const head = JSON.stringify([version, storeId, position, at, stream, revision, eventId]);
    this.#hmacs = keys.map((key) => createHmac('sha256', key).update(`${head}\n`));
  }

  add(rows: readonly RowDigest[]): void {
    let lines = '';
    for (const { accountId, revision, position, digest } of rows)
      lines += `${accountId} ${revision} ${position} ${digest}\n`;
    for (const hmac of this.#hmacs) hmac.update(lines);
  }

  /** Hexadecimal, in the order of the keys. */
  seals(): string[] {
    return this.#hmacs.map((hmac) => hmac.digest('hex'));
  }
}
