/** Prints a line for every ten per cent of work that takes minutes. */
export function progress(lines: number): (what: string, count: number) => void {
  let said = '';
  return (what, count) => {
    const line = `  ${what} ${Math.floor((count * 10) / lines) * 10} % of ${lines.toLocaleString('en')}\n`;
    if (lines >= 500_000 && line !== said) process.stderr.write(line);
    said = line;
  };
}
