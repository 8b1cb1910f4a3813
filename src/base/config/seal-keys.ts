import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';

const BLOCK = /-----BEGIN [^-]+-----[^-]+-----END [^-]+-----/g;

/**
 * Parses keys in PEM, one after the other. A line may end with the two characters `\n`. The first key signs. While a
 * key is being replaced the old private key signs too; afterwards its public key stays, to verify what it signed. The
 * error for any other text does not quote it.
 */
export function sealKeysIn(pem: string): readonly KeyObject[] {
  const text = pem.replaceAll('\\n', '\n');
  try {
    const keys = (text.match(BLOCK) ?? [text]).map((block) =>
      block.includes('PRIVATE') ? createPrivateKey(block) : createPublicKey(block),
    );
    if (keys[0]?.type === 'private' && keys.every((key) => key.asymmetricKeyType === 'ed25519')) return keys;
  } catch {
    // the error's own message would quote the text
  }
  throw new Error(
    'must be an Ed25519 private key in PEM (openssl genpkey -algorithm ed25519); former keys may follow it',
  );
}
