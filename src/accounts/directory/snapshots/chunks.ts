import { createHmac, type Hmac } from 'node:crypto';
import type { SnapshotHeader } from './snapshots.ts';

/** Well below MongoDB's limit of 16 MiB for a document. */
const CHUNK_BYTES = 8 * 1024 * 1024;

/** A piece of a part, as it is stored. */
export interface Chunk {
  readonly bytes: Uint8Array;
  readonly endsPart: boolean;
}

/** Keys that snapshots are sealed with, derived from the master keys. */
export interface SealKeys {
  /** Those to check a seal with; none where there is no master key yet. */
  known(): readonly Buffer[];
  /** The one to seal with. */
  current(): Buffer;
}

/** Proves that this service saved the snapshot: every field of its header, and every chunk. */
export interface Seal {
  readonly chunks: number;
  /** HMAC-SHA256, hexadecimal. */
  readonly seal: string;
}

/** Computes the seal, chunk by chunk. */
export class Sealing {
  readonly #hmac: Hmac;
  #chunks = 0;

  constructor(key: Buffer, { version, storeId, position }: SnapshotHeader) {
    this.#hmac = createHmac('sha256', key).update(`${JSON.stringify([version, storeId, position])}\n`);
  }

  add({ bytes, endsPart }: Chunk): void {
    this.#chunks++;
    this.#hmac.update(`${bytes.length}${endsPart ? '.' : ','}`).update(bytes);
  }

  seal(): Seal {
    return { chunks: this.#chunks, seal: this.#hmac.digest('hex') };
  }
}

export function* cutIntoChunks(parts: Iterable<Uint8Array>): Generator<Chunk, void> {
  for (const bytes of parts) {
    for (let from = 0; from === 0 || from < bytes.length; from += CHUNK_BYTES) {
      const endsPart = from + CHUNK_BYTES >= bytes.length;
      yield { bytes: bytes.subarray(from, from + CHUNK_BYTES), endsPart };
    }
  }
}

/** The parts again. Rejects at the end where the chunks and the header do not match the seal under any of the keys. */
export async function* joinChunks(
  chunks: AsyncIterable<Chunk>,
  { header, chunks: expected, seal }: Seal & { readonly header: SnapshotHeader },
  keys: SealKeys,
): AsyncGenerator<Uint8Array, void> {
  const sealings = keys.known().map((key) => new Sealing(key, header));
  if (sealings.length === 0) throw new Error('there is no master key to check the directory snapshot with');
  let current: Uint8Array[] = [];
  let read = 0;
  for await (const chunk of chunks) {
    read++;
    for (const sealing of sealings) sealing.add(chunk);
    current.push(chunk.bytes);
    if (!chunk.endsPart) continue;
    yield current.length === 1 ? chunk.bytes : Buffer.concat(current);
    current = [];
  }
  if (read === expected && sealings.some((sealing) => sealing.seal().seal === seal)) return;
  throw new Error(
    'the directory snapshot is not as it was saved, or was sealed with another master key: ' +
      `${read} of ${expected} chunks were read`,
  );
}
