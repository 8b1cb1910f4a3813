import { foldRecorded } from '../../accounts/directory/apply-to-directory.ts';
import type { Account } from '../../domain/account.ts';
import { type Refused, refused } from '../../domain/decision.ts';
import { type DesiredAccount, decideDesired } from '../../domain/desired-account.ts';
import type { DomainEvent } from '../../domain/events.ts';
import type { Append, AppendResult } from '../../event-store/event-store.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { readSkipped, type SkippedEvents } from '../../event-store/skipped-events.ts';
import { parsedLines } from '../lines/lines.ts';
import {
  type LineCounts,
  type LineDecider,
  type RecordLinesOptions,
  recordLines,
} from '../lines/record-lines.ts';
import { parseAccountLine } from './parse-account-line.ts';

/** Of lines, each an account unless the file names one twice. */
export interface ApplyCounts {
  readonly applied: number;
  readonly unchanged: number;
  readonly refused: number;
}

export interface ApplyOptions
  extends Pick<
    RecordLinesOptions<DesiredAccount, DomainEvent>,
    'store' | 'author' | 'clock' | 'onRefused' | 'signal'
  > {
  readonly input: AsyncIterable<Buffer>;
  /** Records nothing; `onApplied` is called with what would be recorded. */
  readonly dryRun: boolean;
  readonly onApplied?: (events: readonly DomainEvent[]) => Promise<void>;
  readonly onProgress: (counts: ApplyCounts) => void;
}

/** Less than an import's: a line may cause many events, and a commit must not keep other writers waiting. */
const BATCH_CHARACTERS = 256 * 1024;

type State = { readonly account: Account | undefined } | Refused;

/**
 * Makes accounts what the lines say, in batches: the differences of one account are recorded together or not at all.
 * Each line is applied, unchanged or refused with a reason, independently of the others; lines about the same account
 * follow in their order. Repeated or interrupted, it records only what is missing.
 */
export async function applyAccounts(options: ApplyOptions): Promise<ApplyCounts> {
  const { dryRun, store, onApplied } = options;
  // Later lines about the same account are judged by what earlier ones would have made of it.
  const supposed = new Map<string, State>();
  const skipped = await readSkipped({
    readStream: async (stream) => (await store.readStreams([stream]))[0] ?? [],
  });
  const counts = await recordLines<DesiredAccount, DomainEvent>({
    ...options,
    lines: parsedLines(options.input, parseAccountLine),
    store: dryRun ? { readStreams: (streams) => store.readStreams(streams), append: appendNothing } : store,
    batchCharacters: BATCH_CHARACTERS,
    decider(stream, history) {
      const state = supposed.get(stream) ?? stateOf(history, skipped);
      return deciderAfter(state, (next) => void (dryRun && supposed.set(stream, next)));
    },
    ...(onApplied && { onRecorded: (_line, events) => onApplied(events) }),
    onProgress: (soFar) => options.onProgress(countsOf(soFar)),
  });
  return countsOf(counts);
}

function countsOf({ recorded, unchanged, refused }: LineCounts): ApplyCounts {
  return { applied: recorded, unchanged, refused };
}

function deciderAfter(
  before: State,
  onState: (state: State) => void,
): LineDecider<DesiredAccount, DomainEvent> {
  let state = before;
  return (desired, atMs) => {
    if ('kind' in state) return state;
    const decision = decideDesired(desired, state.account, atMs);
    if (decision.kind !== 'events') return decision;
    state = { account: decision.account };
    onState(state);
    return decision;
  };
}

function stateOf(history: readonly RecordedEvent[], skipped: SkippedEvents): State {
  const folded = foldRecorded(history, skipped);
  return 'fault' in folded ? refused(`it can't be read: ${folded.fault}`) : folded;
}

/** Answers as a store that nobody else writes to. */
async function appendNothing(appends: readonly Append[]): Promise<AppendResult[]> {
  return appends.map(() => ({ kind: 'appended', revision: 0, position: 0 }));
}
