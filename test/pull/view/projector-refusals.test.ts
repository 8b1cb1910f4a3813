import { expect, test } from 'vitest';
import { FuelError } from '../../../src/base/errors.ts';
import { aborted } from '../../../src/base/pause.ts';
import type { ViewChange } from '../../../src/records/project-event.ts';
import { replacing } from '../../support/interposed.ts';
import { confirmed } from '../../support/transactions/e2e-samples.ts';
import { openProjection } from '../../support/transactions/projector.ts';
import { rowIn } from '../../support/transactions/row-in.ts';

const isOf = (id: number) => (change: ViewChange) =>
  change.stream === `transaction-${id}` && !('parkReason' in change);

test('a record that the view cannot store is parked with the reason; the others of its batch are shown', async () => {
  const { append, start, shows, view, store } = openProjection();
  for (let id = 1; id <= 5; id++) await append(`transaction-${id}`, confirmed(id));
  const apply = view.apply.bind(view);
  view.apply = async (changes, to) => {
    if (changes.some(isOf(3))) throw new FuelError('ITEM_REFUSED', 'the row is too large');
    return apply(changes, to);
  };
  const { lines, stop } = start();
  for (const id of [1, 2, 4, 5]) await shows(id);
  await append('transaction-6', confirmed(6));
  await shows(6);
  expect(await rowIn(view, 3)).toBeUndefined();
  expect(await view.parked()).toMatchObject([
    { stream: 'transaction-3', revision: 0, type: 'TransactionConfirmed', reason: 'the row is too large' },
  ]);
  expect(lines.filter(({ level }) => level === 50)).toMatchObject([{ stream: 'transaction-3' }]);
  expect((await view.checkpoint())?.position).toBe(await store.head());
  await stop();
});

test('the checkpoint is never a position that the log does not show, also where a record is refused', async () => {
  const { append, start, shows, view, store } = openProjection();
  await append('transaction-1', confirmed(1));
  await append('transaction-2', confirmed(2));
  const events = (await store.readStreams(['transaction-1', 'transaction-2'])).flat();
  const hidden = replacing(store, {
    /** Yields each event, followed by the position of a record that no read shows. */
    async *subscribe({ signal }) {
      for (const [index, event] of events.entries()) {
        const position = event.position + 100;
        yield { events: [event], position, checkpoint: event.position, caughtUp: index === 1 };
      }
      await aborted(signal);
    },
  });
  const positions: number[] = [];
  const apply = view.apply.bind(view);
  view.apply = async (changes, to) => {
    positions.push(to.position);
    if (changes.some(isOf(2)) && positions.length < 3) throw new FuelError('ITEM_REFUSED', 'too large');
    return apply(changes, to);
  };
  const { stop } = start({ store: hidden });
  await shows(2);
  await stop();
  const shown = [0, ...events.map(({ position }) => position)];
  expect(positions.filter((position) => !shown.includes(position))).toEqual([]);
});

test('while a refused record is isolated the checkpoint stays before the batch', async () => {
  const { append, start, shows, view } = openProjection();
  for (let id = 1; id <= 4; id++) await append(`transaction-${id}`, confirmed(id));
  const positions: number[] = [];
  const apply = view.apply.bind(view);
  view.apply = async (changes, to) => {
    positions.push(to.position);
    if (changes.some(isOf(2))) throw new FuelError('ITEM_REFUSED', 'the row is too large');
    return apply(changes, to);
  };
  const { stop } = start();
  for (const id of [1, 3, 4]) await shows(id);
  await expect.poll(async () => (await view.parked()).length).toBe(1);
  const end = Math.max(...positions);
  const last = positions.lastIndexOf(end);
  expect(positions.slice(1, last).every((position) => position < end)).toBe(true);
  await stop();
});
