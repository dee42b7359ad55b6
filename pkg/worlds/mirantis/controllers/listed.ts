/** The entries of a list of which only its users say that it is one. */
export function listed<T extends object>(given: readonly T[] | undefined): readonly T[] {
  return Array.isArray(given) ? given.filter((one: T | null) => typeof one === 'object' && one !== null) : [];
}
