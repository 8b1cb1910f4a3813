import type { Position } from '../../event-store/event-store.ts';
import type { ViewRows } from './bulk-reads.ts';
import type { BuildCheckpoint } from './checkpoint.ts';

/**
 * The next generation of the view, which is built beside the served one: at most one at a time. `apply` of the view fills
 * it, by its number.
 *
 * - `checkpoint` is that of the one under way, by whichever process; `undefined` where there is none.
 * - `start` continues it where it is of the same store and rendering. Otherwise it is dropped, and another one begins at
 *   position 0, complete at `servesFrom`.
 * - `rows` reads a generation that is being built or served.
 * - `serve` puts it in the place of the served one, which is removed: all processes see it within a second, and each
 *   page is of one of the two. True for one that is served already. False, and nothing changes, for one that was dropped,
 *   is not complete, or is behind the served one.
 */
export interface ViewBuild {
  checkpoint(): Promise<BuildCheckpoint | undefined>;
  start(storeId: string, servesFrom: Position): Promise<BuildCheckpoint>;
  rows(generation: number): ViewRows;
  serve(generation: number): Promise<boolean>;
}
