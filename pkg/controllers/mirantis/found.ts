import { isNotFound } from '../../kube/errors.ts';

/** What a live read gives; undefined when there is nothing of that name. */
export async function found<T>(get: () => Promise<T>): Promise<T | undefined> {
  try {
    return await get();
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}
