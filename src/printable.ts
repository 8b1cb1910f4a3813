/**
 * Text of others on a terminal: names, files and receivers' answers may hold characters that steer it, or that turn
 * the direction in which text is shown. They are printed as JSON escapes them, so JSON that holds them stays the same.
 */

/** C0 but for the line feed, DEL and C1, and the marks that change the direction of text. */
const CONTROLS = /(?!\n)[\p{Cc}\p{Bidi_Control}]/gu;
const WHOLE_KEY = /(svc_(?:live|test)_[a-z0-9]*_)[A-Za-z0-9]+/g;

/** Text of several lines, or JSON, without what steers a terminal. */
export function printable(text: string): string {
  return text.replace(CONTROLS, escaped);
}

/** Likewise what must not make a line of its own, such as a name. */
export function printableLine(text: string): string {
  return printable(text).replaceAll('\n', escaped('\n'));
}

/** Text without the secrets of API keys: a message may quote what was typed. */
export function withoutKeys(text: string): string {
  return text.replace(WHOLE_KEY, '$1…');
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
