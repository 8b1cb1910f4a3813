import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type Customer, createApp } from './app.ts';
import { TransactionDatabase } from './database.ts';

/** The options of the process, as JSON in its only argument. */
export interface ConventionalOptions {
  databasePath: string;
  certPath: string;
  keyPath: string;
  /** The customers by API key. */
  customers: [string, Customer][];
}

const options = JSON.parse(process.argv[2] ?? '') as ConventionalOptions;
const database = new TransactionDatabase(options.databasePath);
const app = createApp(database, new Map(options.customers));
const handle = app.callback();
const server = createServer(
  { cert: readFileSync(options.certPath), key: readFileSync(options.keyPath), keepAliveTimeout: 65_000 },
  (request, response) => void handle(request, response),
);
server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `https://127.0.0.1:${port}/api/v1/integration` })}\n`);
});
process.once('SIGTERM', () => {
  server.close(() => database.close());
  server.closeAllConnections();
});
