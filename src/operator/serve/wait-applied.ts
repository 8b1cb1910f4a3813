import { readProgress } from '../../accounts/rows/read-rows.ts';
import { type Clock, steadyClock } from '../../base/clock.ts';
import {
  type Coordination,
  type LiveProcess,
  PROCESS_MAX_AGE_MS,
} from '../../base/coordination/coordination.ts';
import { FuelError } from '../../base/errors.ts';
import { world } from '../../base/world.ts';
import type { TransactionsView } from '../../pull/view/transactions-view.ts';
import type { Tables } from '../../tables/tables.ts';

/** The longest wait without any progress. */
const MAX_STILL_MS = 10_000;
const CHECK_EVERY_MS = 20;

export interface WaitOptions {
  readonly coordination: Coordination;
  readonly view: TransactionsView;
  /** The tables with the rows of accounts. */
  readonly accounts: Pick<Tables, 'get'>;
  readonly steady?: Clock;
  /** The position of the last event that was recorded. */
  readonly position: number;
  readonly onProgress?: (text: string) => void;
}

/** A follower that has not yet applied the log up to the position. */
interface Behind {
  readonly name: string;
  /** `undefined` until it has caught up once. */
  readonly position: number | undefined;
}

/**
 * Waits until the followers have applied the log up to `position`: that of the accounts, and the projector if there is one. Resolves
 * with `no process` as soon as no process is alive. Rejects with `REFUSED` after 10 s without progress, and says how far each is.
 */
export async function waitUntilApplied(options: WaitOptions): Promise<'applied' | 'no process'> {
  const { coordination, steady = steadyClock, position, onProgress } = options;
  let deadlineMs = steady.now() + MAX_STILL_MS;
  let before: readonly Behind[] = [];
  for (;;) {
    const processes = await coordination.live(PROCESS_MAX_AGE_MS);
    if (processes.length === 0) return 'no process';
    const behind = await behindOf(processes, options);
    if (behind.length === 0) return 'applied';
    if (isFurther(behind, before)) deadlineMs = steady.now() + MAX_STILL_MS;
    before = behind;
    const text = behind.map((one) => `${one.name} (${placeOf(one, position)})`).join(', ');
    onProgress?.(`waiting for ${text}`);
    if (steady.now() >= deadlineMs) {
      throw new FuelError(
        'REFUSED',
        `recorded, but not yet applied by ${text}, without progress for ${MAX_STILL_MS / 1000} s. See \`fuel projection status\``,
      );
    }
    await world.sleep(CHECK_EVERY_MS);
  }
}

function placeOf({ position: at }: Behind, position: number): string {
  return at === undefined ? 'it has not caught up yet' : `at position ${at} of ${position}`;
}

/** True if one of them has made progress or is done. */
function isFurther(behind: readonly Behind[], before: readonly Behind[]): boolean {
  const now = new Map(behind.map(({ name, position }) => [name, position]));
  return before.some(({ name, position }) => !now.has(name) || (now.get(name) ?? -1) > (position ?? -1));
}

async function behindOf(
  processes: readonly LiveProcess[],
  { view, accounts, position }: Pick<WaitOptions, 'view' | 'accounts' | 'position'>,
): Promise<Behind[]> {
  const accountsAt = (await readProgress(accounts))?.reached;
  const all: Behind[] = [{ name: 'the rows of accounts', position: accountsAt }];
  if (processes.some(({ roles }) => roles.includes('projector'))) {
    all.push({ name: 'the projector', position: (await view.checkpoint())?.position });
  }
  return all.filter((one) => (one.position ?? -1) < position);
}
