/** Returns nested arrays: `nested(1)` is `[]`. They can be so deep that JSON.stringify overflows. */
export function nested(levels: number): unknown {
  let value: unknown[] = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}

/** Returns the same as JSON text. */
export function nestedText(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels);
}
