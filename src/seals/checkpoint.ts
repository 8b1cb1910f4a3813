import { createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { FuelError } from '../base/errors.ts';
import type { Hash } from './merkle-tree.ts';

/** What a checkpoint says: the log of this origin had these leaves. */
export interface Checkpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Hash;
}

const ED25519 = 1;
const KEY_ID_BYTES = 4;
const RAW_KEY_BYTES = 32;
const BODY = /^([^\n]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n(?:[^\n]+\n)*$/;
/** The text, an empty line, and the lines of signatures. */
const NOTE = /^(.+?\n)\n((?:\u2014 [^\n]+\n)+)$/s;
const SIGNATURE = /^\u2014 (\S+) ([A-Za-z0-9+/=]+)$/;
/** Name, key id in hexadecimal, and in base64 the algorithm's number before the key. */
const VERIFIER = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/;

/** One public key of a log, under the name that its signatures have. */
class VerifierKey {
  readonly name: string;
  readonly #key: KeyObject;

  constructor(name: string, key: KeyObject) {
    this.name = name;
    this.#key = key;
  }

  static parse(text: string): VerifierKey {
    const [, name = '', id, encoded = ''] = VERIFIER.exec(text.trim()) ?? [];
    const bytes = Buffer.from(encoded, 'base64');
    const isEd25519 = bytes[0] === ED25519 && bytes.length === 1 + RAW_KEY_BYTES;
    const key = isEd25519 ? new VerifierKey(name, publicKeyOf(bytes.subarray(1))) : undefined;
    if (key?.id.toString('hex') === id && key !== undefined) return key;
    throw new FuelError(
      'REFUSED',
      'this is no public key of a log: it has the form NAME+ID+KEY, as fuel audit verify prints it, several by commas',
    );
  }

  /** RFC 8032's 32 bytes. */
  get #bytes(): Buffer {
    return Buffer.from(this.#key.export({ format: 'jwk' }).x ?? '', 'base64url');
  }

  get id(): Buffer {
    const named = Buffer.concat([Buffer.from(`${this.name}\n`), Buffer.of(ED25519), this.#bytes]);
    return hash('sha256', named, 'buffer').subarray(0, KEY_ID_BYTES);
  }

  toString(): string {
    const key = Buffer.concat([Buffer.of(ED25519), this.#bytes]).toString('base64');
    return `${this.name}+${this.id.toString('hex')}+${key}`;
  }

  /** The checkpoint of a signed note; `undefined` where it has no valid signature of this key, or another form. */
  open(note: string): Checkpoint | undefined {
    const [, text = '', signatures = ''] = NOTE.exec(note) ?? [];
    const isSigned = signatures.split('\n').some((line) => {
      const [, name, encoded = ''] = SIGNATURE.exec(line) ?? [];
      const bytes = Buffer.from(encoded, 'base64');
      const isOfKey = name === this.name && bytes.subarray(0, KEY_ID_BYTES).equals(this.id);
      return isOfKey && verify(null, Buffer.from(text), this.#key, bytes.subarray(KEY_ID_BYTES));
    });
    return isSigned ? checkpointIn(text) : undefined;
  }
}

/** The public keys of a log: what one of them signed is its. A log has several while its key is replaced, and after it. */
export class LogVerifier {
  readonly #keys: readonly VerifierKey[];

  constructor(keys: readonly VerifierKey[]) {
    this.#keys = keys;
  }

  /** As C2SP writes a key: `name+key id+key`; several by commas. Throws `REFUSED` for another text. */
  static parse(text: string): LogVerifier {
    return new LogVerifier(text.split(',').map((each) => VerifierKey.parse(each)));
  }

  /** The checkpoint of a signed note; `undefined` where it has no valid signature of these keys, or another form. */
  open(note: string): Checkpoint | undefined {
    for (const key of this.#keys) {
      const checkpoint = key.open(note);
      if (checkpoint !== undefined) return checkpoint;
    }
    return undefined;
  }

  toString(): string {
    return this.#keys.join();
  }
}

/** Signs the checkpoints of a log. */
export class CheckpointSigner {
  readonly verifier: LogVerifier;
  readonly #origin: string;
  readonly #signing: readonly { readonly key: KeyObject; readonly id: Buffer }[];

  /** `keys`: Ed25519; the private ones sign, the others verify what they signed before. */
  constructor(origin: string, keys: readonly KeyObject[]) {
    const verifierOf = (key: KeyObject): VerifierKey =>
      new VerifierKey(origin, key.type === 'private' ? createPublicKey(key) : key);
    this.#origin = origin;
    this.#signing = keys
      .filter(({ type }) => type === 'private')
      .map((key) => ({ key, id: verifierOf(key).id }));
    this.verifier = new LogVerifier(keys.map(verifierOf));
  }

  /** A note of C2SP's `signed-note`, whose text is a checkpoint of its `tlog-checkpoint`. */
  sign({ size, root }: Pick<Checkpoint, 'size' | 'root'>): string {
    const text = `${this.#origin}\n${size}\n${root}\n`;
    const lines = this.#signing.map(({ key, id }) => {
      const signature = Buffer.concat([id, sign(null, Buffer.from(text), key)]);
      return `\u2014 ${this.#origin} ${signature.toString('base64')}\n`;
    });
    return `${text}\n${lines.join('')}`;
  }
}

/** What a note says, whoever signed it; `undefined` where it has another form. */
export function readCheckpoint(note: string): Checkpoint | undefined {
  return checkpointIn(NOTE.exec(note)?.[1] ?? '');
}

function checkpointIn(text: string): Checkpoint | undefined {
  const [, origin = '', size, root = ''] = BODY.exec(text) ?? [];
  return size === undefined ? undefined : { origin, size: Number(size), root };
}

function publicKeyOf(bytes: Buffer): KeyObject {
  const key = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') };
  return createPublicKey({ key, format: 'jwk' });
}
