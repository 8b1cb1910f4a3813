/** Arrays within each other: `nested(1)` is `[]`. As deep as is asked for, where JSON.stringify would overflow. */
export function nested(levels: number): unknown {
  let value: unknown[] = [];
  for (let level = 1; level < levels; level++) value = [value];
  return value;
}

/** The same as JSON text. */
export function nestedText(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels);
}
