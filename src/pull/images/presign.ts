import { createHmac, hash } from 'node:crypto';
import type { Config } from '../../base/config/config.ts';
import { hexAfter } from './hmac-sha256.ts';

const ALGORITHM = 'AWS4-HMAC-SHA256';
const SHA256_HEX_LENGTH = 64;
/** Lengths of keys for which a request that is signed is kept: a store's keys have a few. */
const MAX_KEY_LENGTHS = 64;
const PLAIN_KEY = /^[A-Za-z0-9\-_.~/]*$/;
const NOT_ESCAPED_BY_ENCODE_URI_COMPONENT = /[!'()*]/g;

/** The presigned URL of one object. */
export type PresignUrl = (objectKey: string) => string;

export interface PhotoStore {
  /** Such as `https://photos.example:9000/s3`; a port and a path may be part of it. */
  readonly endpoint: string;
  readonly region: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** A presigned URL is `start`, the key as `encodeKey` writes it, `middle`, and the signature of that key: all ASCII. */
export interface UrlParts {
  readonly start: string;
  encodeKey(objectKey: string): string;
  readonly middle: string;
  signature(encodedKey: string): string;
}

/** URLs issued at the same time. */
export interface IssuedUrls {
  readonly presign: PresignUrl;
  /** The same URLs, for who writes them piece by piece. */
  readonly parts: UrlParts;
  /** When they expire: the issue time, in whole seconds, plus the validity. */
  readonly expiresAtMs: number;
}

export interface Presigner {
  at(issuedAtMs: number, validForSeconds: number): IssuedUrls;
}

/** Presigns URLs, of GET unless said otherwise, for an S3-compatible store in path style: `<endpoint>/<bucket>/<key>`. No call is made. */
export function createPresigner(store: PhotoStore, method: 'GET' | 'HEAD' = 'GET'): Presigner {
  const endpoint = new URL(store.endpoint);
  const base = {
    origin: endpoint.origin,
    host: endpoint.host,
    method,
    pathBefore: `${endpoint.pathname.replace(/\/+$/, '')}/${encodeKey(store.bucket)}/`,
  };
  const keys = signingKeys(store);
  const issue = (issuedAtSecond: number, validForSeconds: number): IssuedUrls => {
    const stamp = compactTime(issuedAtSecond * 1000);
    const parts = urlParts({
      ...base,
      accessKeyId: store.accessKeyId,
      scope: `${stamp.slice(0, 8)}/${store.region}/s3/aws4_request`,
      signingKey: keys(stamp.slice(0, 8)),
      stamp,
      validForSeconds,
    });
    return { presign: presignUrls(parts), parts, expiresAtMs: (issuedAtSecond + validForSeconds) * 1000 };
  };
  let last:
    | { readonly second: number; readonly validForSeconds: number; readonly issued: IssuedUrls }
    | undefined;
  return {
    at(issuedAtMs, validForSeconds) {
      const second = Math.floor(issuedAtMs / 1000);
      if (last?.second !== second || last.validForSeconds !== validForSeconds) {
        last = { second, validForSeconds, issued: issue(second, validForSeconds) };
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

export interface SigningTerms {
  readonly origin: string;
  readonly host: string;
  readonly method: 'GET' | 'HEAD';
  /** The path before the key, URI-encoded: `/` where the host names the bucket, else `/<bucket>/`. */
  readonly pathBefore: string;
  readonly accessKeyId: string;
  /** `YYYYMMDD/<region>/s3/aws4_request`. */
  readonly scope: string;
  readonly signingKey: Buffer;
  /** `YYYYMMDDTHHMMSSZ`. */
  readonly stamp: string;
  readonly validForSeconds: number;
}

/** AWS Signature Version 4 in the query. What does not depend on the object's key is computed once. */
export function urlParts(terms: SigningTerms): UrlParts {
  const query =
    `X-Amz-Algorithm=${ALGORITHM}` +
    `&X-Amz-Credential=${encodeURIComponent(`${terms.accessKeyId}/${terms.scope}`)}` +
    `&X-Amz-Date=${terms.stamp}&X-Amz-Expires=${terms.validForSeconds}&X-Amz-SignedHeaders=host`;
  const canonicalStart = `${terms.method}\n${terms.pathBefore}`;
  const canonicalEnd = `\n${query}\nhost:${terms.host}\n\nhost\nUNSIGNED-PAYLOAD`;
  const toSignStart = `${ALGORITHM}\n${terms.stamp}\n${terms.scope}\n`;
  const sign = hexAfter(terms.signingKey, toSignStart, SHA256_HEX_LENGTH);
  /** By the length of the key: only the key is written for each URL. */
  const canonicals = new Map<number, Buffer>();
  return {
    start: `${terms.origin}${terms.pathBefore}`,
    encodeKey,
    middle: `?${query}&X-Amz-Signature=`,
    signature(key) {
      const known = canonicals.get(key.length);
      const canonical = known ?? Buffer.from(canonicalStart + key + canonicalEnd);
      if (canonicals.size === MAX_KEY_LENGTHS) canonicals.clear();
      if (known === undefined) canonicals.set(key.length, canonical);
      else known.write(key, canonicalStart.length, 'latin1');
      return sign(hash('sha256', canonical, 'hex'));
    },
  };
}

export function presignUrls({ start, middle, signature }: UrlParts): PresignUrl {
  return (objectKey) => {
    const key = encodeKey(objectKey);
    return start + key + middle + signature(key);
  };
}

/** The key that signs everything of one day, region and service. */
export function deriveSigningKey(options: { secretAccessKey: string; day: string; region: string }): Buffer {
  const { secretAccessKey, day, region } = options;
  let key: Buffer = Buffer.from(`AWS4${secretAccessKey}`);
  for (const part of [day, region, 's3', 'aws4_request'])
    key = createHmac('sha256', key).update(part).digest();
  return key;
}

function signingKeys(store: PhotoStore): (day: string) => Buffer {
  let current: { day: string; key: Buffer } | undefined;
  return (day) => {
    if (current?.day !== day) current = { day, key: deriveSigningKey({ ...store, day }) };
    return current.key;
  };
}

/** RFC 3986 over UTF-8, except `/`. A lone surrogate, which UTF-8 can not encode, becomes U+FFFD. */
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
