/** Whether two JSON values say the same: the order of an object's members does not matter, an array's does. */
export function sameJson(one: unknown, other: unknown): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other)) return false;
    return one.length === other.length && one.every((item, index) => sameJson(item, other[index]));
  }
  return sameMembers(one as Members, other as Members);
}

type Members = Readonly<Record<string, unknown>>;

function sameMembers(one: Members, other: Members): boolean {
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && sameJson(one[name], other[name]));
}
