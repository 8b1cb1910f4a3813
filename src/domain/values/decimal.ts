const DECIMAL = /^-?(?:0|[1-9]\d*)(?:\.(\d+))?$/;
const NEGATIVE_ZERO = /^-[0.]+$/;
const MAX_CHARACTERS = 40; // a longer text is a mistake, not an amount

/**
 * Formats an exact decimal with `decimals` digits after the point, padded with zeros. A negative zero loses its sign.
 * Returns `undefined` for text that is not a plain decimal or has more decimals: amounts are never rounded and never
 * become a float.
 */
export function printDecimal(text: string, decimals: number): string | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const match = DECIMAL.exec(text);
  if (match === null) return undefined;
  const given = match[1]?.length ?? 0;
  if (given > decimals) return undefined;
  const shown = NEGATIVE_ZERO.test(text) ? text.slice(1) : text;
  if (given === decimals) return shown;
  return given === 0 ? `${shown}.${'0'.repeat(decimals)}` : shown + '0'.repeat(decimals - given);
}
