import { FuelError } from '../../../base/errors.ts';
import type { Engines } from '../../../service/engines/engines.ts';
import { type Attention, attention } from '../../checks/attention.ts';
import { type FactReads, type FactSources, factReads } from '../../checks/facts.ts';
import type { ConsoleParts } from './console-parts.ts';
import { type Known, known, shared } from './known.ts';

/** However many people look, the stores are asked this often, and less often if that takes long. */
const TERMS = { ageMs: 2_000, maxAgeMs: 15_000 };

type Reads = {
  readonly [Name in keyof FactReads]: () => Promise<Known<Awaited<ReturnType<FactReads[Name]>>>>;
};

/** The facts as pages show them, and the problems by these facts. */
export interface Figures extends Reads {
  readonly problems: () => Promise<readonly Attention[]>;
}

/** Each fact is read once for everybody who looks, and only while somebody does. */
export function figuresOf({ config, clock, engines, lastProof, ...parts }: ConsoleParts): Figures {
  const { roles, readiness, disk } = parts;
  const sources: FactSources = {
    config,
    clock,
    engines,
    find: async (name) => engines[name]() as ReturnType<Engines[typeof name]>,
    store: async () => engines.store(),
    rows: async () => engines.accounts(),
    process: { roles, readiness, disk, lastDamage: () => lastProof()?.damage ?? [] },
  };
  const names = Object.entries(factReads(sources)) as [keyof FactReads, () => Promise<unknown>][];
  const reads = names.map(([name, read]) => [name, shared(() => known(read, () => clock.now()), TERMS)]);
  const figures = Object.fromEntries(reads) as Reads;
  const values = Object.entries<() => Promise<Known<unknown>>>(figures).map(([name, read]) => [
    name,
    async () => knownValue(await read()),
  ]);
  const facts = { ...sources, ...Object.fromEntries(values) };
  return { ...figures, problems: () => attention(facts) };
}

/** For a check, a fact that is not known is an error. */
function knownValue<T>(found: Known<T>): T {
  if ('unknown' in found) throw new FuelError('STORE_UNAVAILABLE', found.unknown);
  return found.value;
}
