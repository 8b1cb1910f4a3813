/**
 * What is handed out as a claim's lease: the lane before the stored token, so that a report tells whose run it
 * moves without reading its delivery.
 */
export function handedOut(prefix: string, token: string): string {
  return `${prefix}:${token}`;
}

export function readLease(lease: string): { readonly prefix: string; readonly token: string } {
  const [prefix = '', ...token] = lease.split(':');
  return { prefix, token: token.join(':') };
}
