import type { AccessReviewer } from '../kube/access-review.ts';
import type { CallOptions } from '../kube/client.ts';
import type { Permission } from './permissions.ts';

/** What was found of permissions that were asked for. */
export interface Review {
  /** Those that we do not have. */
  readonly refused: readonly Permission[];
  /** Those that the server did not tell. */
  readonly unanswered: readonly Permission[];
  /** What it said instead of the first of them. */
  readonly error: unknown;
}

/** At a time: the connections that they share with probes must not all wait for these. */
const AT_A_TIME = 4;
/** Failures after which the server is not asked the rest: it cannot be asked now. */
const MOST_FAILURES = 4;

/** Asks for each permission; one that is not answered does not cost the answers of the others. */
export async function review(
  reviewer: Pick<AccessReviewer, 'mayI'>,
  permissions: readonly Permission[],
  options: CallOptions = {},
): Promise<Review> {
  const allowed = new Map<Permission, boolean>();
  const left = [...permissions];
  const errors: unknown[] = [];
  const ask = async (): Promise<void> => {
    for (let one = left.shift(); one !== undefined; one = errors.length < MOST_FAILURES ? left.shift() : undefined) {
      try {
        allowed.set(one, await reviewer.mayI(one.attributes, options));
      } catch (err) {
        errors.push(err);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, ask));
  return {
    refused: permissions.filter((permission) => allowed.get(permission) === false),
    unanswered: permissions.filter((permission) => !allowed.has(permission)),
    error: errors[0],
  };
}

/** Those of `permissions` that we do not have. Throws ApiError when one could not be asked for. */
export async function refusedOf(...asked: Parameters<typeof review>): Promise<readonly Permission[]> {
  const { refused, unanswered, error } = await review(...asked);
  if (unanswered.length > 0) throw error;
  return refused;
}
