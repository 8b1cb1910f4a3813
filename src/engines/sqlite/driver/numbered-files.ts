import { existsSync, readdirSync } from 'node:fs';

const NUMBERED = /^(.+)-(\d+)\.db$/;

/**
 * The names of the files in `folder` that are `first` with or without a number, such as `transactions.db` and
 * `transactions-2.db`, in the order of their numbers.
 */
export function numberedFiles(folder: string, first: string): string[] {
  return (existsSync(folder) ? readdirSync(folder) : [])
    .flatMap((name) => {
      if (name === first) return [{ name, number: 0 }];
      const [, stem, number] = NUMBERED.exec(name) ?? [];
      return `${stem}.db` === first ? [{ name, number: Number(number) }] : [];
    })
    .sort((a, b) => a.number - b.number)
    .map(({ name }) => name);
}
