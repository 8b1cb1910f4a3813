import { parentPort, workerData } from 'node:worker_threads';
import { CommitWatch } from '../../../src/engines/sqlite/driver/commit-watch.ts';
import { Database } from '../../../src/engines/sqlite/driver/database.ts';

// Run as a thread: posts `ready` once it watches the file, and `notified` for each notification.
const db = new Database(workerData.path, { migrations: [], durability: 'normal' });
const watch = new CommitWatch(db);
watch.add({ notify: () => parentPort?.postMessage('notified') });
parentPort?.on('message', () => undefined); // keeps the thread alive
parentPort?.postMessage('ready');
