import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A collector in a process of its own, which takes everything and reads nothing. It prints its address. */
const server = createServer((request, response) => {
  request.resume().once('end', () => response.setHeader('content-type', 'application/x-protobuf').end());
}).listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${port}` })}\n`);
});
