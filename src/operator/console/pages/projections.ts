import { MAX_PARKED_LOOKED_AT } from '../../../event-store/skipped-events.ts';
import type { FollowerStatus } from '../../answers/follower.ts';
import { type ParkedAnswer, parkedAnswer, parkedBy } from '../../answers/follower.ts';
import { type LoggedEvent, operationLine } from '../../audit/newest-events.ts';
import { state, time } from '../../print/document.ts';
import type { Proof } from '../figures/console-parts.ts';
import { type Known, known } from '../figures/known.ts';
import { type Command, cmd } from '../html/commands.ts';
import { html, line } from '../html/html.ts';
import type { Page, PageContext } from '../html/layout.ts';
import { orUnknown, type Shown, section, sectionOf, unknown } from '../html/parts.ts';

const MAX_OPERATIONS = 20;
/** The most parked events of a follower that are shown; the command lists all. */
const MAX_PARKED = 50;

/** How far each follower is, what it has parked, and if view and deliveries agree with the events. */
export async function projectionsPage({ parts, figures }: PageContext): Promise<Page> {
  const [found, readiness, operations] = await Promise.all([
    figures.followers(),
    figures.readiness(),
    figures.operations(),
  ]);
  const followers = found.value ?? [];
  const nowMs = parts.clock.now();
  const parked = await known(
    async () => (await Promise.all(followers.map((follower) => parkedEvents(follower, parts)))).flat(),
    () => parts.clock.now(),
  );
  return {
    title: 'Projections and agreement',
    parts: [
      html`<div class="grid wide">
        ${sectionOf('Followers of the events', { found, nowMs }, (of) => of)}
        ${section(agreement(parts, operations))}
        ${sectionOf('Readiness of this process', { found: readiness, nowMs }, (of) => of?.checks ?? {})}
      </div>`,
      sectionOf('Parked events, oldest first', { found: parked, nowMs }, (of) => of),
      sectionOf('Newest operations on the stores', { found: operations, nowMs }, (all) =>
        all.slice(0, MAX_OPERATIONS).map(operationLine),
      ),
    ],
    commands: commandsOf(followers),
  };
}

/** Reads the oldest parked events, without the reasons, which may name a person. */
async function parkedEvents({ name, parked: count }: FollowerStatus, parts: PageContext['parts']) {
  const parked: ParkedAnswer[] = [];
  if (count === 0) return parked;
  for await (const event of parkedBy(name, parts, MAX_PARKED_LOOKED_AT)) {
    const reason = `fuel projection parked --follower ${name} --personal`;
    if (parked.push({ ...parkedAnswer(name, event), reason }) === MAX_PARKED) break;
  }
  return parked;
}

function agreement(
  { lastProof, roles, startedAtMs }: PageContext['parts'],
  operations: Known<readonly LoggedEvent[]>,
) {
  const unproven: Shown = roles.includes('projector')
    ? [
        unknown('another process may have verified'),
        'here: this process has not verified since it started at',
        time(startedAtMs),
      ]
    : [unknown('this process does not verify'), 'here: processes with the role projector verify'];
  const proven = ({ atMs, accounts, view, deliveries }: Proof): Shown => {
    const repaired = state(`repaired ${accounts} accounts, ${view} rows, ${deliveries} deliveries`, 'warn');
    return [time(atMs), accounts + view + deliveries === 0 ? state('they agreed', 'good') : repaired];
  };
  const repair = orUnknown(operations, (list) => {
    const last = list.find(({ type }) => type === 'AgreementRepaired');
    if (last === undefined) return 'none';
    return [time(last.atMs), `${last.data.repaired} of ${line(String(last.data.what))}`];
  });
  const proof = lastProof();
  return {
    caption: 'Agreement with the events',
    facts: [
      ['Last nightly verification', proof === undefined ? unproven : proven(proof)],
      ['Last repair', repair],
    ] as const,
  };
}

function commandsOf(followers: readonly FollowerStatus[]): Command[] {
  const ofParked = followers
    .filter(({ parked }) => parked > 0)
    .flatMap(({ name }): Command[] => {
      const of = name === 'transactions' ? [] : ['--follower', name];
      return [
        cmd(`All events that ${name} has parked`)`projection parked ${of}`,
        cmd(`Retry the parked events of ${name}`)`projection parked retry --all ${of}`,
      ];
    });
  return [
    ...ofParked,
    cmd('How far each follower is')`projection status`,
    cmd('Rebuild the view while the old one is served')`projection rebuild transactions`,
    cmd('Compare view and deliveries with the events')`verify --explain`,
    cmd('Repair the differences')`verify --repair`,
  ];
}
