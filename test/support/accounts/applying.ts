import type { DomainEvent } from '../../../src/domain/events.ts';
import {
  type ApplyCounts,
  type ApplyOptions,
  applyAccounts,
} from '../../../src/operator/apply/apply-accounts.ts';
import { linesOf } from '../../../src/operator/apply/export-account.ts';
import { openPushStores } from '../deliveries/push-stores.ts';
import { inChunks } from '../transactions/importing.ts';
import { modelOf } from './account-model.ts';

export const APPLY_AUTHOR = { actor: 'ada', command: 'fuel account apply' };

/** Applies lines to a separate embedded store. */
export function startApplying() {
  const { store, clock, append } = openPushStores();
  const run = async (lines: readonly object[] | string, options: Partial<ApplyOptions> = {}) => {
    const refused: [lineNumber: number, reason: string][] = [];
    const progress: ApplyCounts[] = [];
    const applied: DomainEvent[] = [];
    const text =
      typeof lines === 'string' ? lines : lines.map((line) => `${JSON.stringify(line)}\n`).join('');
    const counts = await applyAccounts({
      store,
      input: inChunks([text]),
      author: APPLY_AUTHOR,
      clock,
      dryRun: false,
      onRefused: (lineNumber, reason) => void refused.push([lineNumber, reason]),
      onApplied: async (events) => void applied.push(...events),
      onProgress: (soFar) => void progress.push(soFar),
      signal: new AbortController().signal,
      ...options,
    });
    return { counts, refused, progress, applied };
  };
  const typesOf = async (id: number) => (await store.readStream(`account-${id}`)).map(({ type }) => type);
  /** Returns what `fuel account export` prints, sorted. */
  const exported = async () => {
    const directory = await modelOf(store);
    return [...directory.accounts()]
      .sort((a, b) => a.id - b.id)
      .flatMap(({ account }) => (account === undefined ? [] : [...linesOf(account)]));
  };
  return { store, clock, append, run, typesOf, exported };
}
