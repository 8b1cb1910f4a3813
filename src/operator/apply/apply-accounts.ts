import { foldRecorded } from '../../accounts/read-account-event.ts';
import type { Account } from '../../domain/account.ts';
import { accountStream } from '../../domain/account-events.ts';
import { type Refused, refused } from '../../domain/decision.ts';
import type { DomainEvent } from '../../domain/events.ts';
import { MAX_NESTING, shortened } from '../../domain/values/bounds.ts';
import type { RecordedEvent } from '../../event-store/recorded-event.ts';
import { readSkipped, type SkippedEvents } from '../../event-store/skipped-events.ts';
import { type ParsedLine, parsedLines, parseJsonLine } from '../lines/lines.ts';
import {
  type LineCounts,
  type LineDecider,
  type RecordLinesOptions,
  recordLines,
} from '../lines/record-lines.ts';
import { type DesiredAccount, decideDesired, faultsOfDesired } from './desired-account.ts';

/** Numbers of lines. Each is an account, unless the file names one twice. */
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
  /** The reason for what the lines switch off. */
  readonly reason?: string | undefined;
  /** Refuses lines that switch something off if there is no reason. */
  readonly requiresReason?: boolean;
  /** Called with the events that are recorded, or in a dry run would be. */
  readonly onApplied?: (events: readonly DomainEvent[]) => Promise<void>;
  readonly onProgress: (counts: ApplyCounts) => void;
}

/** Smaller than an import's batch: a line may cause many events, and a commit must not keep other writers waiting. */
const BATCH_CHARACTERS = 256 * 1024;
const LINE = {
  members: '"account_id"',
  maxLevels: MAX_NESTING,
  levels: `the ${MAX_NESTING} levels that a line may have`,
  refusesRepeated: true,
} as const;

type State = { readonly account: Account | undefined } | Refused;

/**
 * Makes accounts match the lines, in batches. The differences of one account are recorded together or not at all. Each line is
 * applied, unchanged or refused with a reason, independently of the others; lines about the same account keep their order.
 * Repeated or interrupted work records only what is missing.
 */
export async function applyAccounts(options: ApplyOptions): Promise<ApplyCounts> {
  const { store, input, onApplied, onProgress } = options;
  const skipped = await readSkipped({
    readStream: async (stream) => (await store.readStreams([stream]))[0] ?? [],
  });
  const counts = await recordLines<DesiredAccount, DomainEvent>({
    ...options,
    lines: parsedLines(input, ({ text }) => parseAccountLine(text)),
    batchCharacters: BATCH_CHARACTERS,
    decider: (history) => deciderAfter(stateAfter(history, skipped), options),
    ...(onApplied && { onRecorded: (_line, events) => onApplied(events) }),
    onProgress: (soFar) => onProgress(countsOf(soFar)),
  });
  return countsOf(counts);
}

function countsOf({ recorded, unchanged, refused }: LineCounts): ApplyCounts {
  return { applied: recorded, unchanged, refused };
}

/** Reads an account as it should be. The reason why a line can't be used lists every fault. */
function parseAccountLine(text: string): ParsedLine<DesiredAccount> {
  const line = parseJsonLine(text, LINE);
  if (!line.ok) return { ok: false, reason: shortened(line.reason) };
  const faults = faultsOfDesired(line.members);
  if (faults.length > 0) return { ok: false, reason: shortened(faults.join('; ')) };
  const content = line.members as DesiredAccount;
  return { ok: true, stream: accountStream(content.account_id), content };
}

function deciderAfter(
  before: State,
  { reason, requiresReason }: Pick<ApplyOptions, 'reason' | 'requiresReason'>,
): LineDecider<DesiredAccount, DomainEvent> {
  let state = before;
  return (desired, atMs) => {
    if ('kind' in state) return state;
    const decision = decideDesired({ ...desired, reason }, state.account, atMs);
    if (decision.kind !== 'events') return decision;
    const switchesOff = decision.events.some(({ type }) => type === 'IntegrationDisabled');
    if (switchesOff && requiresReason && reason === undefined)
      return refused('it switches the integration off, and production requires a reason. Add --reason');
    state = { account: decision.account };
    return decision;
  };
}

function stateAfter(history: readonly RecordedEvent[], skipped: SkippedEvents): State {
  const folded = foldRecorded(history, skipped);
  return 'fault' in folded ? refused(`it can't be read: ${folded.fault}`) : folded;
}
