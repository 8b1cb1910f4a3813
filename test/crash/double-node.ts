import { EventEmitter } from 'node:events';
import { startEventStoreDbDouble } from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';

// Run as a separate process: the double of EventStoreDB on PORT, with its log in FOLDER.
const [port, folder] = process.argv.slice(2);
if (port === undefined || folder === undefined) throw new Error('usage: double-node.ts PORT FOLDER');
EventEmitter.defaultMaxListeners = 1_000; // one listener for each answer that waits to be read
const { url } = await startEventStoreDbDouble({ port: Number(port), folder });
process.stdout.write(`${JSON.stringify({ url, pid: process.pid })}\n`);
// The parent process holds the other end, so this process ends with it.
process.stdin.resume().once('end', () => process.exit());
