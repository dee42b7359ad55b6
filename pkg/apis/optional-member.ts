/** An object with the member if it has a value, otherwise an empty object. */
export function optionalMember<K extends string>(
  member: K,
  value: string | undefined | null,
): Partial<Record<K, string>> {
  return value === undefined || value === null || value === '' ? {} : ({ [member]: value } as Record<K, string>);
}
