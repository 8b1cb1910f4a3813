import { hash, timingSafeEqual } from 'node:crypto';

/** Says whether a request carries the gateway's proof that it made checks 1 and 2. */
export type EdgeProof = (presented: string | undefined) => boolean;

/**
 * Several tokens may be valid at once, so that one can be replaced. Compared as digests, each one every time:
 * how long it takes says nothing about a token.
 */
export function createEdgeProof(tokens: readonly string[]): EdgeProof {
  const digests = tokens.map(digest);
  return (presented) => {
    if (presented === undefined) return false;
    const given = digest(presented);
    return digests.map((valid) => timingSafeEqual(valid, given)).includes(true);
  };
}

function digest(token: string): Buffer {
  return hash('sha256', token, 'buffer');
}
