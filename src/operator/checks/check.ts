import type { Registry } from '../../engines/engines.ts';
import type { Facts } from './facts.ts';

/** Something that is not right. */
export interface Problem {
  readonly detail: string;
  /** The remedy, as a command or an instruction. */
  readonly do: string;
  /** True if it may end by itself, or is for somebody else to repair. Then it does not fail its check. */
  readonly isNotice: boolean;
  /** The same for the same thing in every look; the name of the check unless given. */
  readonly id?: string;
  /** The words of a command after `fuel`, which the overview offers to copy; those of doctor unless given. */
  readonly words?: readonly string[];
  /** The page that says more; that of projections unless given. */
  readonly href?: string;
}

/** The result of a check: a line about the things it looked at, and the problems among them. */
export interface Finding {
  readonly detail: string;
  readonly problems: readonly Problem[];
}

interface CheckBase {
  readonly name: string;
  /** Settings without which doctor can't make it. */
  readonly settings?: readonly string[];
  /** Set if it looks at the stores, and so at the settings by which they are found. It may require the event store. */
  readonly stores?: 'required' | 'optional';
  /** True if other checks may fail only because it does. */
  readonly isCause?: boolean;
  /** Checks without which this one can only fail too. Doctor does not make it if one of them fails. */
  readonly follows?: readonly string[];
  /** True if it says nothing new while the disk is full or an engine does not answer. */
  readonly isConsequence?: boolean;
  /** The alerts about the same: one of them wakes somebody where somebody has to act. */
  readonly alerts?: readonly string[];
  /** The remedy if it can't be made in time. Unless given, it is to repair the causes. */
  readonly remedy?: string;
}

/** A check that any process can make. Doctor and the overview show it, or the overview alone. */
export interface SharedCheck extends CheckBase {
  readonly madeBy?: 'overview';
  find(facts: Facts): Finding | Promise<Finding>;
}

export interface DoctorCheck extends CheckBase {
  readonly madeBy: 'doctor';
  /** Says if the service uses what it checks. Otherwise doctor does not list it. */
  readonly isInUse?: (facts: DoctorFacts) => boolean;
  find(facts: DoctorFacts): Finding | Promise<Finding>;
}

export type Check = SharedCheck | DoctorCheck;

/** Doctor also looks at the environment that it was started with. */
export interface DoctorFacts extends Facts {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly registry: Registry;
}

export function right(detail: string): Finding {
  return { detail, problems: [] };
}

export function wrong(detail: string, remedy: string, shown: Pick<Problem, 'id' | 'words'> = {}): Finding {
  return { detail: '', problems: [{ detail, do: remedy, isNotice: false, ...shown }] };
}

interface Told extends Partial<Problem> {
  readonly id: string;
  readonly words: readonly string[];
}

/** A problem that does not end before somebody acts. Its command is what to do, unless `do` says more. */
export function act(detail: string, { words, ...told }: Told): Problem {
  return { detail, do: `fuel ${words.join(' ')}`, isNotice: false, words, ...told };
}

/** A problem that may end by itself, or is for somebody else to repair. */
export function notice(detail: string, told: Told): Problem {
  return act(detail, { ...told, isNotice: true });
}

/** Runs a check. One that could only repeat what its causes say is not run. */
export async function findingOf<F extends Facts>(
  check: CheckBase & { find(facts: F): Finding | Promise<Finding> },
  facts: F,
): Promise<Finding> {
  const causes = check.isConsequence ? await causesOf(facts) : [];
  if (causes.length > 0) return notChecked(causes);
  if (check.stores === 'required' && (await facts.find('store')) === undefined)
    return right(await whyNoStore(facts));
  return check.find(facts);
}

export function notChecked(causes: readonly string[]): Finding {
  return right(`not checked, because ${causes.join(' and ')} ${causes.length === 1 ? 'is' : 'are'} wrong`);
}

async function causesOf({ engines, ...facts }: Facts): Promise<string[]> {
  const [disk, readiness] = await Promise.all([facts.disk(), facts.readiness()]);
  // No process can report what it works on while the disk of the embedded files is full.
  const isFull = engines.embedded.length > 0 && disk?.refusal !== undefined;
  const unavailable = engines.remote.filter(({ name }) => readiness?.checks[name] === false);
  return [...(isFull ? ['disk-space'] : []), ...unavailable.map(({ name }) => name)];
}

async function whyNoStore({ engines }: Facts): Promise<string> {
  const isMissing = (await engines.state('store')) === 'missing';
  return isMissing ? 'there is no store yet' : 'not checked: the check store says why';
}
