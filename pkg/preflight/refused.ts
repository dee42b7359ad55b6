import type { AccessReviewer } from '../kube/access-review.ts';
import type { CallOptions } from '../kube/client.ts';
import type { Permission } from './permissions.ts';

/** At a time: the connections that they share with probes must not all wait for these. */
const AT_A_TIME = 4;

/** Those of `permissions` that we do not have. Throws ApiError when one could not be asked for. */
export async function refusedOf(
  reviewer: Pick<AccessReviewer, 'mayI'>,
  permissions: readonly Permission[],
  options: CallOptions = {},
): Promise<readonly Permission[]> {
  const allowed = new Map<Permission, boolean>();
  const left = [...permissions];
  const ask = async (): Promise<void> => {
    for (let one = left.shift(); one !== undefined; one = left.shift()) {
      allowed.set(one, await reviewer.mayI(one.attributes, options));
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, ask));
  return permissions.filter((permission) => allowed.get(permission) === false);
}
