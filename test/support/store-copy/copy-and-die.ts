import { interposed } from '../interposed.ts';
import { copyFrom, openEnd, RealisticStore } from './store-copy.ts';

// Run as a separate process: copies the stores of SOURCE to TARGET and is killed in the middle of an append
// after this many EVENTS, or while storing deliveries after this many BATCHES.
const [from, to, events, batches] = process.argv.slice(2);
if (from === undefined || to === undefined)
  throw new Error('usage: copy-and-die.ts SOURCE TARGET EVENTS BATCHES');
const [source, target] = [openEnd(from), openEnd(to)];
const store = new RealisticStore(target.store);
store.appendsLeft = Number(events);
store.onUnavailable = () => process.kill(process.pid, 'SIGKILL');
let batchesLeft = Number(batches);
const tables = interposed(target.queue.tables, ['write'], () => {
  if (batchesLeft-- === 0) process.kill(process.pid, 'SIGKILL');
});
await copyFrom(source, { ...target, queue: { ...target.queue, tables }, store });
