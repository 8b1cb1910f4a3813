const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:]/g;

/**
 * The first name that an object in this text has twice; the text must be valid JSON. `JSON.parse` keeps the last of its
 * values without a word.
 */
export function repeatedMember(json: string): string | undefined {
  const open: (Set<string> | undefined)[] = [];
  let text = '';
  for (const [token] of json.matchAll(TOKEN)) {
    if (token === '{') open.push(new Set());
    else if (token === '[') open.push(undefined);
    else if (token === '}' || token === ']') open.pop();
    else if (token !== ':') text = token;
    else {
      const name = JSON.parse(text) as string;
      const names = open.at(-1);
      if (names?.has(name)) return name;
      names?.add(name);
    }
  }
  return undefined;
}
