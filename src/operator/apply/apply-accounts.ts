import { foldRecorded } from '../../accounts/directory/apply-to-directory.ts';
import type { Account } from '../../domain/account.ts';
import { type Refused, refused } from '../../domain/decision.ts';
import { type DesiredAccount, decideDesired } from '../../domain/desired-account.ts';
import type { DomainEvent } from '../../domain/events.ts';
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
    'store' | 'author' | 'clock' | 'dryRun' | 'onRefused' | 'signal'
  > {
  readonly input: AsyncIterable<Buffer>;
  /** Why what the lines switch off is switched off; `undefined` refuses these lines where it `isAsked` for. */
  readonly why?: { readonly reason: string | undefined; readonly isAsked: boolean };
  /** In a dry run with what would be recorded. */
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
  const { store, onApplied } = options;
  const skipped = await readSkipped({
    readStream: async (stream) => (await store.readStreams([stream]))[0] ?? [],
  });
  const counts = await recordLines<DesiredAccount, DomainEvent>({
    ...options,
    lines: parsedLines(options.input, ({ text }) => parseAccountLine(text)),
    batchCharacters: BATCH_CHARACTERS,
    decider: (_stream, history) => deciderAfter(stateOf(history, skipped), options.why),
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
  { reason, isAsked }: ApplyOptions['why'] = { reason: undefined, isAsked: false },
): LineDecider<DesiredAccount, DomainEvent> {
  let state = before;
  return (desired, atMs) => {
    if ('kind' in state) return state;
    const decision = decideDesired({ ...desired, reason }, state.account, atMs);
    if (decision.kind !== 'events') return decision;
    if (isAsked && reason === undefined && decision.events.some(({ type }) => type === 'IntegrationDisabled'))
      return refused('it switches the integration off: say why with --reason, which production requires');
    state = { account: decision.account };
    return decision;
  };
}

function stateOf(history: readonly RecordedEvent[], skipped: SkippedEvents): State {
  const folded = foldRecorded(history, skipped);
  return 'fault' in folded ? refused(`it can't be read: ${folded.fault}`) : folded;
}
