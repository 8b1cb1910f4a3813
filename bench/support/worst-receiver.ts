import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';

/** Answers well until it is told to be hostile: then with chunks of one byte, each in records of one byte. */
let isHostile = false;

function answer(socket: TLSSocket): void {
  if (!isHostile) return void socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
  socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
  const endless = `1;${'x'.repeat(4_000)}\r\nx\r\n`;
  const sendOn = (): void => {
    for (const byte of endless) if (!socket.writable || !socket.write(byte)) break;
    if (socket.writable) setImmediate(sendOn);
  };
  sendOn();
}

// Runs as a thread with one listener for each receiver.
const { count, caFile, keyFile } = workerData;
const pem = { cert: readFileSync(caFile), key: readFileSync(keyFile) };
const listening = Array.from({ length: count }, () => {
  const server = createServer(pem, (socket) => {
    socket.setNoDelay(true).on('error', () => undefined); // the sender breaks the connection off
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      const [head = '', body] = text.split('\r\n\r\n', 2);
      if (body === undefined || body.length < Number(/content-length: *(\d+)/i.exec(head)?.[1])) return;
      text = '';
      answer(socket);
    });
  });
  const { promise, resolve } = Promise.withResolvers<number>();
  server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  return promise;
});
parentPort?.on('message', () => {
  isHostile = true;
});
parentPort?.postMessage(await Promise.all(listening));
