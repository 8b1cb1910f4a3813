export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the output as an operator's script would
  readonly json: any;
  // biome-ignore lint/suspicious/noExplicitAny: as above, one document a line
  readonly lines: any[];
}

/** The result of a command. Its output is parsed as JSON when that is asked for. */
export function commandResult(
  code: number | null,
  { stdout, stderr }: { readonly stdout: string; readonly stderr: string },
): CommandResult {
  return {
    code,
    stdout,
    stderr,
    get json() {
      return JSON.parse(stdout);
    },
    get lines() {
      return stdout
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line));
    },
  };
}
