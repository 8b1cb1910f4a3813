import { createHash } from 'node:crypto';

/** Well below MongoDB's limit of 16 MiB for a document. */
const CHUNK_BYTES = 8 * 1024 * 1024;

/** A piece of a part, as it is stored. */
export interface Chunk {
  readonly bytes: Uint8Array;
  readonly endsPart: boolean;
}

/** Proves that all chunks of a snapshot were read, as they were saved. */
export interface Seal {
  readonly chunks: number;
  /** Hexadecimal; of all bytes, with a line feed at the end of each part. */
  readonly sha256: string;
}

/** Computes the seal, chunk by chunk. */
export class Sealing {
  readonly #hash = createHash('sha256');
  #chunks = 0;

  add({ bytes, endsPart }: Chunk): void {
    this.#chunks++;
    this.#hash.update(bytes);
    if (endsPart) this.#hash.update('\n');
  }

  seal(): Seal {
    return { chunks: this.#chunks, sha256: this.#hash.digest('hex') };
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

/** The parts again. Rejects at the end where the chunks do not match the seal. */
export async function* joinChunks(
  chunks: AsyncIterable<Chunk>,
  seal: Seal,
): AsyncGenerator<Uint8Array, void> {
  const sealing = new Sealing();
  let current: Uint8Array[] = [];
  for await (const chunk of chunks) {
    sealing.add(chunk);
    current.push(chunk.bytes);
    if (!chunk.endsPart) continue;
    yield current.length === 1 ? chunk.bytes : Buffer.concat(current);
    current = [];
  }
  const found = sealing.seal();
  if (found.chunks === seal.chunks && found.sha256 === seal.sha256) return;
  throw new Error(
    `the snapshot of the directory is not as it was saved: ${found.chunks} of ${seal.chunks} chunks were read`,
  );
}
