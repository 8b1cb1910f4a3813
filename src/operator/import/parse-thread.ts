import { parentPort } from 'node:worker_threads';
import { type LineBlock, parseLines } from '../lines/lines.ts';
import { packLines } from './packed-lines.ts';
import { parseLine } from './parse-line.ts';

export type ParseThreadMessage = LineBlock | 'stop';

/** Parses the blocks of lines that it is given, and answers each one. */
parentPort?.on('message', (message: ParseThreadMessage) => {
  if (message === 'stop') {
    parentPort?.close();
    return;
  }
  const { buffer, byteOffset, length } = message.bytes; // a copied buffer is a plain array of bytes
  const block = { first: message.first, bytes: Buffer.from(buffer, byteOffset, length) };
  const packed = packLines(parseLines(block, parseLine));
  parentPort?.postMessage(packed, [packed.data.buffer]);
});
