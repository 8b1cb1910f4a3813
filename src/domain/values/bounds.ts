/** The maximum length of a text field in Unicode code points, as JSON Schema counts them. */
export const MAX_TEXT_CHARACTERS = 1_000;
/** How deep objects and arrays may be nested in an event's data. The data itself is the first level. */
export const MAX_NESTING = 64;

export function isTextTooLong(text: string): boolean {
  if (text.length <= MAX_TEXT_CHARACTERS) return false;
  if (text.length > 2 * MAX_TEXT_CHARACTERS) return true;
  let characters = 0;
  for (const _ of text) characters += 1;
  return characters > MAX_TEXT_CHARACTERS;
}

/** Returns what is wrong with a text, whatever it is for; `undefined` if nothing is. */
export function textFault(text: string): string | undefined {
  if (isTextTooLong(text)) return `must have at most ${MAX_TEXT_CHARACTERS} characters`;
  return text.isWellFormed() ? undefined : 'must be Unicode text: half of a surrogate pair stands alone';
}

const RELATIVE = /(?:^|\/)\.\.?(?:\/|$)/;

/** True for a path with a segment `.` or `..`, which clients would resolve in a signed URL. */
export function isRelative(path: string): boolean {
  return RELATIVE.test(path);
}

/**
 * True if objects and arrays are nested deeper than `levels`. JSON.parse accepts any depth, but recursive code such as
 * JSON.stringify overflows the stack at some thousand levels.
 */
export function nestsDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((member) => nestsDeeperThan(member, levels - 1));
  const members = value as Readonly<Record<string, unknown>>;
  // `for in` does not copy the names, which matters since every event passes here. JSON has no inherited members.
  for (const name in members) {
    const member = members[name];
    if (typeof member === 'object' && nestsDeeperThan(member, levels - 1)) return true; // saves most of the calls
  }
  return false;
}

/** Shortens a text that quotes a value of any length. */
export function shortened(text: string, maxCharacters = MAX_TEXT_CHARACTERS): string {
  return text.length <= maxCharacters ? text : `${text.slice(0, maxCharacters - 1)}…`;
}
