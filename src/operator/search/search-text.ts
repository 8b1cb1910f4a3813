/** The tatweel matches too: Unicode counts it as a letter, but it only stretches an Arabic word. */
const NEITHER_LETTER_NOR_DIGIT = /[^\p{L}\p{N}]|\u0640/gu;
const ARABIC_DIGIT = /[\u0660-\u0669\u06f0-\u06f9]/g;

/**
 * Reduces a text to what a search compares: letters and digits only, without accents, in capitals. Names and numbers
 * that look the same are recorded in many forms (composed or not, with no-break spaces, direction marks, other digits).
 * A search for a text of which nothing remains finds nothing.
 */
export function searchable(text: string): string {
  return text
    .normalize('NFKD')
    .replace(NEITHER_LETTER_NOR_DIGIT, '')
    .replace(ARABIC_DIGIT, (digit) => String(digit.charCodeAt(0) % 16))
    .toLowerCase() // otherwise toUpperCase would not turn a capital sharp s into SS
    .toUpperCase();
}
