/**
 * Orders two resourceVersions of one resource: negative when `a` is older. They are decimal integers of any length; leading
 * zeros do not count.
 */
export function compareResourceVersions(a: string, b: string): number {
  const left = significant(a);
  const right = significant(b);
  if (left.length !== right.length) return left.length - right.length;
  if (left === right) return 0;
  return left < right ? -1 : 1;
}

function significant(digits: string): string {
  return digits.startsWith('0') ? digits.replace(/^0+/, '') : digits;
}
