import { parentPort, workerData } from 'node:worker_threads';
import { CommitWatch } from '../../../src/sqlite/commit-watch.ts';
import { Database } from '../../../src/sqlite/database.ts';

// Run as a thread: says `ready` once it watches the file, and `rung` whenever it is rung.
const db = new Database(workerData.path, { migrations: [], durability: 'normal' });
const watch = new CommitWatch(db);
watch.add({ notify: () => parentPort?.postMessage('rung') });
parentPort?.on('message', () => undefined); // keeps the thread alive
parentPort?.postMessage('ready');
