import type { DeliveryReport } from '../../../src/push/queue/delivery.ts';
import type { Receiver, Seen } from '../parts/receivers.ts';
import { CLOCKS_MS, hasWrongTimes, type Judged } from './deliveries.ts';
import { askedUntilMs, type Entry, Lanes } from './lanes.ts';

/** How long a fault, or the start or end of a process, may explain the outcome of an attempt. */
const CALM_MS = 60_000;
/** The time until all processes know which of them live. The report of a killed one has to expire first. */
const DISPUTED_MS = 15_000;
/** The time from a claim to its request, in which a name may be looked up and a connection made. */
const UNDER_WAY_MS = 150;
/** Attempts with a longer pause between them belong to different bursts. */
const BURST_PAUSE_MS = 120_000;
/** How many of a burst may fail at their first attempt until the pace is found, besides a share of all. */
const HANDFUL = 10;
const PART = 0.15;

interface PaceJudged extends Judged {
  readonly receivers: readonly Receiver[];
  /** The key that each host belongs to. */
  readonly hosts: ReadonlyMap<string, string>;
  /** The times when processes started or ended. */
  readonly processesChangedAtMs: readonly number[];
}

/** Yields contradictions about the pace of receivers that accept everything at their own pace. */
export function* judgePace(judged: PaceJudged): Generator<string, void> {
  for (const { host, seen } of judged.receivers) {
    for (const fault of judgeWaits(seen, judged)) yield `${host} ${fault}`;
    for (const fault of judgeProcesses(seen, judged)) yield `${host} ${fault}`;
  }
  const receiversOf = (prefix: string): Receiver[] =>
    judged.receivers.filter(({ host }) => judged.hosts.get(host) === prefix);
  const entries = [...judged.deliveries.values()].filter((entry) => !hasWrongTimes(entry, judged));
  for (const entry of entries) {
    const { transactionId, prefix } = entry.owed;
    if (failedInVain(entry, receiversOf(prefix), judged))
      yield `transaction ${transactionId} failed to ${prefix}, whose receiver takes all that it is asked at its pace`;
  }
  for (const [prefix, attempts] of new Lanes(entries).attempts)
    for (const fault of judgeBursts(attempts, receiversOf(prefix), judged))
      yield `of the attempts to ${prefix} ${fault}`;
}

/** Checks that a process that was asked to wait starts nothing before that time. */
function* judgeWaits(seen: readonly Seen[], judged: PaceJudged): Generator<string, void> {
  for (const [index, { asked, heardAtMs, from }] of seen.entries()) {
    if (asked === undefined || heardAtMs === undefined) continue;
    const untilMs = asked.untilMs - (asked.isDate ? CLOCKS_MS : 0);
    for (const later of seen.slice(index + 1)) {
      if (later.sentAtMs >= untilMs) break;
      const isStarted = later.from === from && later.sentAtMs > heardAtMs + UNDER_WAY_MS;
      if (isStarted && isCalm(judged, later.sentAtMs - CALM_MS, later.sentAtMs))
        yield `gets transaction ${later.transactionId} ${Math.round(untilMs - later.sentAtMs)} ms before the time that it has asked for`;
    }
  }
}

/** Checks that only one process works on a host while the same processes live. */
function* judgeProcesses(seen: readonly Seen[], judged: PaceJudged): Generator<string, void> {
  for (const [index, next] of seen.entries()) {
    const before = seen[index - 1];
    if (before === undefined || before.from === next.from) continue;
    if (isQuiet(judged, before.sentAtMs - DISPUTED_MS, next.sentAtMs))
      yield `gets transaction ${next.transactionId} from ${next.from}, and the one before from ${before.from}`;
  }
}

/** Checks that a retry is not due before the receiver has asked for it. */
export function judgeRetry({ prefix, transactionId, ...report }: DeliveryReport): string | undefined {
  if (report.kind !== 'retry') return undefined;
  const soonMs = Math.round((askedUntilMs(report.attempt) ?? 0) - CLOCKS_MS - report.dueAtMs);
  if (soonMs <= 0) return undefined;
  return `transaction ${transactionId} to ${prefix} is due again ${soonMs} ms before the time that was asked for`;
}

/** True if it failed at its last attempt and nothing explains one of its attempts. */
function failedInVain(
  { progress, attempts }: Entry,
  receivers: readonly Receiver[],
  judged: PaceJudged,
): boolean {
  if (progress.state !== 'failed' || !/the last, failed/.test(progress.reason ?? '')) return false;
  const inCycle = attempts.filter(({ cycle }) => cycle === progress.cycle);
  const [first, last] = [inCycle[0], inCycle.at(-1)];
  if (first === undefined || last === undefined) return false;
  const isGood = receivers.every((each) => each.goodMoods(first.startedAtMs - CALM_MS, last.startedAtMs));
  const isExplained = inCycle.some(
    ({ startedAtMs }) => !isQuiet(judged, startedAtMs - CALM_MS, startedAtMs + CLOCKS_MS),
  );
  return isGood && !isExplained;
}

/** Checks that few requests are repeated, besides those by which the pace is found. */
function* judgeBursts(
  attempts: Entry['attempts'],
  receivers: readonly Receiver[],
  judged: PaceJudged,
): Generator<string, void> {
  for (let from = 0, to = 1; from < attempts.length; from = to, to = from + 1) {
    while (startOf(attempts[to]) - startOf(attempts[to - 1]) < BURST_PAUSE_MS) to += 1;
    const burst = attempts.slice(from, to);
    const [fromMs, toMs] = [startOf(burst[0]) - CALM_MS, startOf(burst.at(-1)) + CLOCKS_MS];
    const failed = burst.filter(({ outcome }) => !outcome.ok).length;
    if (failed <= HANDFUL + PART * burst.length || !isQuiet(judged, fromMs, toMs)) continue;
    const moods = receivers.map((each) => each.goodMoods(fromMs, toMs));
    if (moods.every((each) => each !== undefined))
      yield `${failed} of ${burst.length} failed from ${new Date(startOf(burst[0])).toISOString()} on (its receiver: ${moods.flat()})`;
  }
}

function startOf(attempt: Entry['attempts'][number] | undefined): number {
  return attempt?.startedAtMs ?? Number.POSITIVE_INFINITY;
}

/** True if nothing went wrong in that time. */
function isCalm({ faultsAtMs, wrongTimes }: PaceJudged, fromMs: number, toMs: number): boolean {
  return (
    !faultsAtMs.some((ms) => fromMs < ms && ms < toMs) &&
    !wrongTimes.some((wrong) => wrong.fromMs < toMs && wrong.untilMs > fromMs)
  );
}

/** True if nothing went wrong and no process started or ended in that time. */
function isQuiet(judged: PaceJudged, fromMs: number, toMs: number): boolean {
  return isCalm(judged, fromMs, toMs) && !judged.processesChangedAtMs.some((ms) => fromMs < ms && ms < toMs);
}
