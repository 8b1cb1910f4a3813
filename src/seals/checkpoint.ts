import { createPublicKey, hash, type KeyObject, sign, verify } from 'node:crypto';
import { FuelError } from '../base/errors.ts';
import type { Hash } from './merkle-tree.ts';

/** The statement that a signed note contains: the log of this origin had this size and root. */
export interface LogCheckpoint {
  readonly origin: string;
  readonly size: number;
  readonly root: Hash;
}

const ED25519 = 1;
const KEY_ID_BYTES = 4;
const RAW_KEY_BYTES = 32;
const BODY = /^([^\n]+)\n(0|[1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n(?:[^\n]+\n)*$/;
/** A signed note: the text, an empty line, and the lines of signatures. */
const NOTE = /^(.+?\n)\n((?:\u2014 [^\n]+\n)+)$/s;
const SIGNATURE = /^\u2014 (\S+) ([A-Za-z0-9+/=]+)$/;
/** A public key as text: name, key id in hexadecimal, and in base64 the number of the algorithm followed by the key. */
const VERIFIER = /^([^\s+]+)\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)$/;

/** One public key of a log, with the name that its signatures contain. */
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
      'not a public key of a log. Give NAME+ID+KEY as `fuel audit verify` prints it, or several separated by commas',
    );
  }

  /** The 32 bytes of the key (RFC 8032). */
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

  /**
   * Returns the checkpoint of a signed note; `undefined` if its form is wrong or it has no valid signature of this key.
   */
  open(note: string): LogCheckpoint | undefined {
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

/** The public keys of a log. A signature of any of them is valid. A log has several once its key has been replaced. */
export class LogVerifier {
  readonly #keys: readonly VerifierKey[];

  constructor(keys: readonly VerifierKey[]) {
    this.#keys = keys;
  }

  /** Parses keys in the form of C2SP, `name+key id+key`, separated by commas. Throws `REFUSED` for any other text. */
  static parse(text: string): LogVerifier {
    return new LogVerifier(text.split(',').map((each) => VerifierKey.parse(each)));
  }

  /** Returns the checkpoint of a signed note; `undefined` if its form is wrong or none of these keys has signed it. */
  open(note: string): LogCheckpoint | undefined {
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

  /** Takes Ed25519 keys. The private ones sign; the public ones only verify what they have signed before. */
  constructor(origin: string, keys: readonly KeyObject[]) {
    const verifierOf = (key: KeyObject): VerifierKey =>
      new VerifierKey(origin, key.type === 'private' ? createPublicKey(key) : key);
    this.#origin = origin;
    this.#signing = keys
      .filter(({ type }) => type === 'private')
      .map((key) => ({ key, id: verifierOf(key).id }));
    this.verifier = new LogVerifier(keys.map(verifierOf));
  }

  /** Returns a note in the form of C2SP's `signed-note`, whose text has the form of its `tlog-checkpoint`. */
  sign({ size, root }: Pick<LogCheckpoint, 'size' | 'root'>): string {
    const text = `${this.#origin}\n${size}\n${root}\n`;
    const lines = this.#signing.map(({ key, id }) => {
      const signature = Buffer.concat([id, sign(null, Buffer.from(text), key)]);
      return `\u2014 ${this.#origin} ${signature.toString('base64')}\n`;
    });
    return `${text}\n${lines.join('')}`;
  }
}

/** Returns the checkpoint of a note without checking its signatures; `undefined` if its form is wrong. */
export function readCheckpoint(note: string): LogCheckpoint | undefined {
  return checkpointIn(NOTE.exec(note)?.[1] ?? '');
}

function checkpointIn(text: string): LogCheckpoint | undefined {
  const [, origin = '', size, root = ''] = BODY.exec(text) ?? [];
  return size === undefined ? undefined : { origin, size: Number(size), root };
}

function publicKeyOf(bytes: Buffer): KeyObject {
  const key = { kty: 'OKP', crv: 'Ed25519', x: bytes.toString('base64url') };
  return createPublicKey({ key, format: 'jwk' });
}
