/** JSON that is text already: a store takes it as it is, and it is parsed once, where someone looks at its value. */
export class JsonText {
  readonly text: string;
  #value: unknown;

  /** `value`: where it is known, the one that the text was made of. */
  constructor(text: string, value?: unknown) {
    this.text = text;
    this.#value = value;
  }

  get value(): unknown {
    this.#value ??= JSON.parse(this.text);
    return this.#value;
  }
}

/** The JSON to store for the data of a new event. */
export function jsonText(data: unknown): string {
  return data instanceof JsonText ? data.text : (JSON.stringify(data) ?? 'null');
}

/** Writes JSON of objects that often are the same one several times in a row, as the metadata of one step's events is. */
export function repeatingJson(): (value: object) => string {
  let last: object | undefined;
  let text = '';
  return (value) => {
    if (value !== last) text = JSON.stringify(value);
    last = value;
    return text;
  };
}
