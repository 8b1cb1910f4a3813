import { parentPort, workerData } from 'node:worker_threads';
import { type CutState, type Line, LineCutter, parseLines } from '../lines/lines.ts';
import { packLines } from './packed-lines.ts';
import { parseLine } from './parse-line.ts';

/** A chunk of the input, or its end. */
export type ParseThreadMessage = Uint8Array | 'end' | 'stop';

/** Parses the lines of the chunks that it is given, and answers each chunk with the lines that it completes. */
const cutter = new LineCutter(workerData as CutState);
const answer = (lines: readonly Line[]): void => {
  const packed = packLines(parseLines(lines, parseLine));
  parentPort?.postMessage(packed, [packed.data.buffer]);
};

parentPort?.on('message', (message: ParseThreadMessage) => {
  if (message === 'stop') parentPort?.close();
  else if (message === 'end') answer(cutter.end());
  else answer(cutter.cut(Buffer.from(message.buffer, message.byteOffset, message.length)));
});
