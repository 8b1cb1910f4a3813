import { copyFrom, openEnd, RealisticStore } from './store-copy.ts';

// Run as a separate process: copies the stores of SOURCE into TARGET and is killed in the middle of an append
// after so many EVENTS, or of storing deliveries after so many BATCHES.
const [from, to, events, batches] = process.argv.slice(2);
if (from === undefined || to === undefined)
  throw new Error('usage: copy-and-die.ts SOURCE TARGET EVENTS BATCHES');
const [source, target] = [openEnd(from), openEnd(to)];
const store = new RealisticStore(target.store, 3);
store.appendsLeft = Number(events);
store.onUnavailable = () => process.kill(process.pid, 'SIGKILL');
let batchesLeft = Number(batches);
const { queue } = target;
const storing = queue.store.bind(queue);
queue.store = async (content) => {
  if (content.deliveries !== undefined && batchesLeft-- === 0) process.kill(process.pid, 'SIGKILL');
  await storing(content);
};
await copyFrom(source, { ...target, store });
