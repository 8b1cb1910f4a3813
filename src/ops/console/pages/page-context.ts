import type { ConsoleParts } from '../figures/parts.ts';
import type { Snapshots } from '../figures/snapshot.ts';

/** What a page is made from. */
export interface PageContext {
  readonly parts: ConsoleParts;
  readonly snapshots: Snapshots;
  /** The parameters of the query, each once, as they came. */
  readonly query: Readonly<Record<string, string>>;
  /** The last part of the path, for a page about one thing. */
  readonly name: string;
}
