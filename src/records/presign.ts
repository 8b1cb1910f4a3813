import { createHmac, hash } from 'node:crypto';
import type { Config } from '../base/config/config.ts';

const ALGORITHM = 'AWS4-HMAC-SHA256';
const SHA256_HEX_LENGTH = 64;
const PLAIN_KEY = /^[A-Za-z0-9\-_.~/]*$/;
const NOT_ESCAPED_BY_ENCODE_URI_COMPONENT = /[!'()*]/g;

/** Returns the presigned URL of one object. */
export type PresignUrl = (objectKey: string) => string;

export interface PhotoStore {
  /** A URL such as `https://photos.example:9000/s3`. It may contain a port and a path. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/**
 * The parts of a presigned URL, in order: `start`, the encoded key, `middle`, and the signature of that key. All are
 * ASCII.
 */
interface UrlParts {
  readonly start: string;
  encodeKey(objectKey: string): string;
  readonly middle: string;
  signature(encodedKey: string): string;
}

/** The URLs that are issued at the same time. */
export interface IssuedUrls {
  readonly presign: PresignUrl;
  /** When they expire: the issue time, in whole seconds, plus the validity. */
  readonly expiresAtMs: number;
}

export interface Presigner {
  at(issuedAtMs: number, validForSeconds: number): IssuedUrls;
}

/**
 * Creates a presigner of URLs for an S3-compatible store in path style:
 * `<endpoint>/<bucket>/<key>`. It does not call the store.
 */
export function createPresigner(store: PhotoStore): Presigner {
  let last:
    | { readonly second: number; readonly validForSeconds: number; readonly issued: IssuedUrls }
    | undefined;
  return {
    at(issuedAtMs, validForSeconds) {
      const second = Math.floor(issuedAtMs / 1000);
      if (last?.second !== second || last.validForSeconds !== validForSeconds) {
        const parts = urlParts(store, { second, validForSeconds });
        const presign = (objectKey: string): string => {
          const key = encodeKey(objectKey);
          return parts.start + key + parts.middle + parts.signature(key);
        };
        const issued = { presign, expiresAtMs: (second + validForSeconds) * 1000 };
        last = { second, validForSeconds, issued };
      }
      return last.issued;
    },
  };
}

/** The presigner of the photo store that the configuration names. */
export function configuredPresigner(config: Config): Presigner {
  return createPresigner(configuredPhotoStore(config));
}

export function configuredPhotoStore(config: Config): PhotoStore {
  return {
    endpoint: config.FUEL_IMAGES_ENDPOINT,
    region: config.FUEL_IMAGES_REGION,
    bucket: config.FUEL_IMAGES_BUCKET,
    accessKeyId: config.FUEL_IMAGES_ACCESS_KEY_ID,
    secretAccessKey: config.FUEL_IMAGES_SECRET_ACCESS_KEY,
  };
}

/**
 * Prepares URLs with an AWS Signature Version 4 in the query. Everything that does not depend on the key is computed
 * once.
 */
function urlParts(
  { endpoint, region, bucket, accessKeyId, secretAccessKey }: PhotoStore,
  issue: { readonly second: number; readonly validForSeconds: number },
): UrlParts {
  const { origin, host, pathname } = new URL(endpoint);
  const path = `${pathname.replace(/\/+$/, '')}/${encodeKey(bucket)}/`;
  const stamp = compactTime(issue.second * 1000);
  const scope = [stamp.slice(0, 8), region, 's3', 'aws4_request'];
  const query =
    `X-Amz-Algorithm=${ALGORITHM}` +
    `&X-Amz-Credential=${encodeURIComponent([accessKeyId, ...scope].join('/'))}` +
    `&X-Amz-Date=${stamp}&X-Amz-Expires=${issue.validForSeconds}&X-Amz-SignedHeaders=host`;
  const canonicalStart = `GET\n${path}`;
  const canonicalEnd = `\n${query}\nhost:${host}\n\nhost\nUNSIGNED-PAYLOAD`;
  const toSignStart = `${ALGORITHM}\n${stamp}\n${scope.join('/')}\n`;
  const signingKey = scope.reduce(
    (key, part) => createHmac('sha256', key).update(part).digest(),
    Buffer.from(`AWS4${secretAccessKey}`),
  );
  const sign = hexAfter(signingKey, toSignStart, SHA256_HEX_LENGTH);
  /** Reused buffers by the length of the key, which is written into them. New texts make a page take a sixth longer. */
  const canonicals = new Map<number, Buffer>();
  return {
    start: origin + path,
    encodeKey,
    middle: `?${query}&X-Amz-Signature=`,
    signature(key) {
      const canonical = canonicals.get(key.length) ?? Buffer.from(canonicalStart + key + canonicalEnd);
      canonicals.set(key.length, canonical);
      canonical.write(key, canonicalStart.length, 'latin1');
      return sign(hash('sha256', canonical, 'hex'));
    },
  };
}

/** Escapes a key as RFC 3986 does, except `/`. A lone surrogate, which UTF-8 can't encode, becomes U+FFFD. */
function encodeKey(key: string): string {
  if (PLAIN_KEY.test(key)) return key;
  return encodeURIComponent(key.toWellFormed())
    .replaceAll('%2F', '/')
    .replace(
      NOT_ESCAPED_BY_ENCODE_URI_COMPONENT,
      (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
    );
}

function compactTime(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;
}

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;

/**
 * Makes a function that computes HMAC-SHA256 (RFC 2104) in hex for messages that consist of `start` and `length`
 * further ASCII characters. Two one-shot digests over prepared buffers take a sixth of the time of `createHmac`, which
 * sets up native state in each call; a page signs 200 URLs.
 */
export function hexAfter(key: Uint8Array, start: string, length: number): (end: string) => string {
  const block = key.length > BLOCK_BYTES ? hash('sha256', key, 'buffer') : key;
  const message = Buffer.concat([Buffer.from(start), Buffer.alloc(length)]);
  const inner = Buffer.concat([Buffer.alloc(BLOCK_BYTES, INNER_PAD), message]);
  const outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, OUTER_PAD);
  block.forEach((byte, index) => {
    inner[index] = byte ^ INNER_PAD;
    outer[index] = byte ^ OUTER_PAD;
  });
  return (end) => {
    inner.write(end, inner.length - length, 'latin1');
    // The digest is a text with one character for each byte, since a buffer takes four times as long.
    outer.write(hash('sha256', inner, 'binary'), BLOCK_BYTES, 'latin1');
    return hash('sha256', outer, 'hex');
  };
}
