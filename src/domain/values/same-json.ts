/**
 * True if two JSON values are equal. The order of an object's members does not matter. It uses no recursion, since a
 * stored value may be nested to any depth.
 */
export function sameJson(one: unknown, other: unknown): boolean {
  const open: (readonly [unknown, unknown])[] = [[one, other]];
  for (let pair = open.pop(); pair !== undefined; pair = open.pop()) {
    const [left, right] = pair;
    if (left === right) continue;
    if (!isMembers(left) || !isMembers(right) || Array.isArray(left) !== Array.isArray(right)) return false;
    const names = Object.keys(left);
    if (names.length !== Object.keys(right).length) return false;
    for (const name of names) {
      if (!Object.hasOwn(right, name)) return false;
      open.push([left[name], right[name]]);
    }
  }
  return true;
}

type Members = Readonly<Record<string, unknown>>;

function isMembers(value: unknown): value is Members {
  return typeof value === 'object' && value !== null;
}
