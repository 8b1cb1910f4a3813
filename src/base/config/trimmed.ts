/** White space, byte order marks and other invisible characters at the start and the end. */
const AROUND = /^[\p{White_Space}\p{Cf}]+|[\p{White_Space}\p{Cf}]+$/gu;

export function trimmed(text: string): string {
  return text.replace(AROUND, '');
}
