import { EventEmitter } from 'node:events';
import { startEventStoreDbDouble } from '../support/event-store/eventstoredb-double/eventstoredb-double.ts';

// Run as a process of its own: the double of EventStoreDB on PORT, with its log in FOLDER.
const [port, folder] = process.argv.slice(2);
if (port === undefined || folder === undefined) throw new Error('usage: double-node.ts PORT FOLDER');
EventEmitter.defaultMaxListeners = 1_000; // a listener for each answer that waits for its reader
const { url } = await startEventStoreDbDouble({ port: Number(port), folder });
process.stdout.write(`${JSON.stringify({ url, pid: process.pid })}\n`);
// Whoever started it holds the other end: it does not outlive them.
process.stdin.resume().once('end', () => process.exit());
