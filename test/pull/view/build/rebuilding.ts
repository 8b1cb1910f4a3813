import { pino } from 'pino';
import { OPERATIONS_STREAM } from '../../../../src/domain/operations-events.ts';
import {
  type RebuildOptions,
  type RebuildResult,
  rebuildTransactions,
} from '../../../../src/pull/view/build/rebuild.ts';
import type { BuildProgress } from '../../../../src/pull/view/checkpoint.ts';
import type { Made } from '../../../../src/pull/view/generations.ts';
import { interposed, type Steps } from '../../../support/interposed.ts';
import { confirmed, voided } from '../../../support/transactions/e2e-samples.ts';
import { alterServed } from '../../../support/transactions/open-view.ts';
import { WHOLE } from '../../../support/transactions/opened-view.ts';
import { beforeCall, openProjection } from '../../../support/transactions/projector.ts';

const log = pino({ level: 'silent' });

/** Records transactions 1 to 3 (2 is voided), with a way to rebuild the view. */
export async function recorded() {
  const opened = openProjection();
  const { store, view, coordination, clock, append, stored } = opened;
  await append('transaction-1', confirmed(1));
  await append('transaction-2', confirmed(2), voided(2));
  await append('transaction-3', confirmed(3));
  const progress: BuildProgress[] = [];
  const rebuild = (options: Partial<RebuildOptions> = {}): Promise<RebuildResult> =>
    rebuildTransactions({
      store,
      view,
      coordination,
      clock,
      log,
      holder: 'rebuild',
      signal: new AbortController().signal,
      author: { actor: 'Ada', command: 'test' },
      reason: 'requested',
      onProgress: (step) => void progress.push(step),
      ...options,
    });
  const ids = async (): Promise<number[]> => (await view.page(WHOLE)).rows.map(({ id }) => id);
  const operations = async () => (await store.readStream(OPERATIONS_STREAM)).slice(1);
  const alter = (change: (made: Made) => Made) => alterServed((plan) => stored.open(plan, clock), change);
  return { ...opened, rebuild, progress, ids, operations, alter };
}

/** Like `recorded`, but with everything in the view. */
export async function projected() {
  const opened = await recorded();
  const { stop } = opened.start();
  await opened.shows(3);
  await stop();
  return opened;
}

/** Rebuilds event by event, with a hook before each step that changes the build. */
export async function stepping(
  { store, view, rebuild }: Awaited<ReturnType<typeof recorded>>,
  { before }: Steps,
): Promise<RebuildResult> {
  const served = (await view.checkpoint())?.generation;
  const apply: typeof view.apply = async (changes, to) => {
    if (to.generation !== served) before('apply');
    return view.apply(changes, to);
  };
  const steps = new Proxy(interposed(view, ['startBuild', 'serveBuild'], before), {
    get: (whole, name) => (name === 'apply' ? apply : Reflect.get(whole, name)),
  });
  const inSteps = beforeCall(store, 'subscribe', (options) =>
    Object.assign(options as object, { batchSize: 1 }),
  );
  return rebuild({ view: steps, store: inSteps });
}
