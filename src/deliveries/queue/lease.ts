import { randomUUID } from 'node:crypto';

/** A token that nobody else has; it names the holder for whoever reads the log. */
export function newLease(holder: string): string {
  return `${holder}/${randomUUID()}`;
}
