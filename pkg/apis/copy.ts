/** A copy of an object of the API, which is nothing but JSON: cheaper than structuredClone. */
export function copyOfObject<T extends object>(object: T): T {
  return JSON.parse(JSON.stringify(object)) as T;
}
