import { nestsDeeperThan } from '../../domain/values/bounds.ts';
import { repeatedMember } from './repeated-member.ts';

/** The members of the JSON object on one line, or why it is none. */
export type JsonLine =
  | { readonly ok: true; readonly members: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly reason: string };

export interface LineForm {
  /** What the object must have: `"type" and "data"`. */
  readonly members: string;
  /** Objects and arrays within each other; the line's own object is the first. */
  readonly maxLevels: number;
  /** What it may not be deeper than: `the 64 levels that …`. */
  readonly levels: string;
  /** Whether no object may have a member twice. To look takes longer than an import has for a line. */
  readonly refusesRepeated?: true;
}

/** Reads a line that must be one JSON object. */
export function parseJsonLine(text: string, form: LineForm): JsonLine {
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch (error) {
    return { ok: false, reason: `is not JSON: ${(error as Error).message}` };
  }
  if (typeof line !== 'object' || line === null || Array.isArray(line)) {
    return { ok: false, reason: `is not an object with ${form.members}` };
  }
  // Before anything walks the values by recursion.
  if (nestsDeeperThan(line, form.maxLevels)) {
    return { ok: false, reason: `nests deeper than ${form.levels}` };
  }
  const repeated = form.refusesRepeated ? repeatedMember(text) : undefined;
  if (repeated !== undefined)
    return { ok: false, reason: `has the member ${JSON.stringify(repeated)} twice` };
  return { ok: true, members: line as Readonly<Record<string, unknown>> };
}
