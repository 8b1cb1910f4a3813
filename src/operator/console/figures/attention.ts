import { failingWebhooks } from '../../checks/accounts.ts';
import { type Facts, judge, type Problem } from '../../checks/table.ts';
import type { Known } from './known.ts';
import type { ConsoleParts } from './parts.ts';
import type { Snapshot } from './snapshot.ts';

/** Something that an operator should look at. */
export interface Attention extends Pick<Problem, 'id' | 'text' | 'href' | 'words'> {
  /** `bad` does not end before somebody acts. */
  readonly level: 'bad' | 'warn';
}

/** What the members of a snapshot are called where they can't be read; they may hide anything. */
const NAMES = {
  followers: 'followers',
  backlog: 'the backlog of deliveries',
  failing: 'failing webhooks',
  processes: 'processes',
  readiness: 'readiness',
  operations: 'repairs',
  certificateEndsAtMs: 'the certificate',
  disk: 'the disk',
  lists: 'webhooks that are switched off, and closed accounts',
  damage: 'damaged events',
} as const satisfies Record<Exclude<keyof Snapshot, 'atMs'>, string>;

/** What needs attention, the worst first; empty where all is well. */
export function attentionOf(
  snapshot: Snapshot,
  parts: Pick<ConsoleParts, 'directory' | 'engineNames'>,
): readonly Attention[] {
  const found = judge(factsOf(snapshot, parts)).flatMap(({ severity, problems }) =>
    problems.map(({ do: cure, text, ...problem }) => ({
      ...problem,
      level: severity === 'act' ? ('bad' as const) : ('warn' as const),
      text: cure === undefined ? text : `${text}: ${cure}`,
    })),
  );
  const ranked = found.toSorted((a, b) => Number(a.level === 'warn') - Number(b.level === 'warn'));
  return [...ranked, ...unknownIn(snapshot)];
}

function factsOf(snapshot: Snapshot, parts: Pick<ConsoleParts, 'directory' | 'engineNames'>): Facts {
  const { failing, lists, operations, followers, damage, disk, atMs } = snapshot;
  return {
    atMs,
    disk: disk.value,
    readiness: snapshot.readiness.value?.checks,
    engines: parts.engineNames,
    damage: damage.value,
    followers: followers.value,
    closed: lists.value?.closed,
    webhooks: lists.value?.webhooks.length,
    disabled: lists.value?.disabled.map(({ prefix }) => prefix),
    failing: failingWebhooks(failing.value ?? [], parts),
    oldestDueAtMs: snapshot.backlog.value?.nextDueAtMs,
    certificateEndsAtMs: snapshot.certificateEndsAtMs.value,
    repairs: (operations.value ?? [])
      .filter(({ type }) => type === 'AgreementRepaired')
      .map(({ data, atMs }) => ({ atMs, what: `${data.what}`, repaired: `${data.repaired}` })),
  };
}

function unknownIn(snapshot: Snapshot): Attention[] {
  return (Object.keys(NAMES) as (keyof typeof NAMES)[]).flatMap((name) => {
    const found: Known<unknown> = snapshot[name];
    if (!('unknown' in found)) return [];
    const what = NAMES[name];
    const text = `not known: ${what} (${found.unknown})`;
    return [{ level: 'warn', id: `unknown-${what}`, text, href: '/', words: ['doctor'] }];
  });
}
