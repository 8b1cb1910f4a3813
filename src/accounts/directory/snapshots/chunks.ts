import { createHash } from 'node:crypto';

/** Well below the 16 MiB that a document may have. */
const CHUNK_BYTES = 8 * 1024 * 1024;

/** As much of a part as an engine stores at once. */
export interface Chunk {
  readonly bytes: Uint8Array;
  readonly endsPart: boolean;
}

/** What a snapshot's chunks must come to. */
export interface Seal {
  readonly chunks: number;
  /** Hexadecimal; of all bytes, with a line feed at the end of each part. */
  readonly sha256: string;
}

/** Makes the seal of chunks while they go by. */
export class Sealing {
  readonly #hash = createHash('sha256');
  #chunks = 0;

  add({ bytes, endsPart }: Chunk): void {
    this.#chunks++;
    this.#hash.update(bytes);
    if (endsPart) this.#hash.update('\n');
  }

  /** Ends it. */
  seal(): Seal {
    return { chunks: this.#chunks, sha256: this.#hash.digest('hex') };
  }
}

export function* cutIntoChunks(parts: Iterable<string>): Generator<Chunk, void> {
  for (const part of parts) {
    const bytes = Buffer.from(part);
    for (let from = 0; from === 0 || from < bytes.length; from += CHUNK_BYTES) {
      const endsPart = from + CHUNK_BYTES >= bytes.length;
      yield { bytes: bytes.subarray(from, from + CHUNK_BYTES), endsPart };
    }
  }
}

/** The parts that were cut. Rejects at the end where the chunks do not come to the seal. */
export async function* joinChunks(chunks: AsyncIterable<Chunk>, seal: Seal): AsyncGenerator<string, void> {
  const sealing = new Sealing();
  let begun: Uint8Array[] = [];
  for await (const chunk of chunks) {
    sealing.add(chunk);
    begun.push(chunk.bytes);
    if (!chunk.endsPart) continue;
    yield Buffer.concat(begun).toString();
    begun = [];
  }
  const found = sealing.seal();
  if (found.chunks === seal.chunks && found.sha256 === seal.sha256) return;
  throw new Error(
    `the snapshot of the directory is not as it was saved: ${found.chunks} of ${seal.chunks} chunks were read`,
  );
}
