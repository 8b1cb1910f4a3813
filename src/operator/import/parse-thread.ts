import { parentPort } from 'node:worker_threads';
import { type LineBlock, parseLines } from '../lines/lines.ts';
import { packLines } from './packed-lines.ts';
import { parseLine } from './parse-line.ts';

/** Parses each block of lines that this thread is given and answers with its lines. */
parentPort?.on('message', (message: LineBlock | 'stop') => {
  if (message === 'stop') {
    parentPort?.close();
    return;
  }
  const { buffer, byteOffset, length } = message.bytes; // a copied buffer arrives as a plain array of bytes
  const block = { first: message.first, bytes: Buffer.from(buffer, byteOffset, length) };
  const packed = packLines(parseLines(block, parseLine));
  parentPort?.postMessage(packed, [packed.data.buffer]);
});
