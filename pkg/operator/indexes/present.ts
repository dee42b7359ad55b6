/** The key of an object under a value that it may not have. */
export function present(value: string | undefined): string[] {
  return value === undefined || value === '' ? [] : [value];
}
