/**
 * Safe output of text from outside. Names, files and receivers' answers may contain characters that control a terminal
 * or change the direction of text. They are escaped as in JSON, so that JSON text keeps its meaning.
 */

/** C0 except the line feed, DEL, C1, and the marks that change the direction of text. */
const CONTROLS = /(?!\n)[\p{Cc}\p{Bidi_Control}]/gu;
const WHOLE_KEY = /(svc_(?:live|test)_[a-z0-9]*_)[A-Za-z0-9]+/g;

/** Escapes control characters in multi-line text or in JSON. */
export function printable(text: string): string {
  return text.replace(CONTROLS, escaped);
}

/** Also escapes line feeds, for text that must stay on one line, such as a name. */
export function printableLine(text: string): string {
  return printable(text).replaceAll('\n', escaped('\n'));
}

/** Removes the secrets of API keys, since a message may quote an argument. */
export function withoutKeys(text: string): string {
  return text.replace(WHOLE_KEY, '$1…');
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
