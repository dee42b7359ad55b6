import type { AccessReviewer } from '../../kube/client/access-review.ts';
import { grants, type ResourceRule } from '../../kube/client/access-rules.ts';
import type { CallOptions } from '../../kube/client/client.ts';
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

type Reviewer = Pick<AccessReviewer, 'mayI' | 'rulesIn'>;

/** At a time: the connections that they share with probes must not all wait for these. */
const AT_A_TIME = 4;
/** Failures after which the server is not asked the rest: it cannot be asked now. */
const MOST_FAILURES = 4;

/** No namespace has this name, which none may have: what is granted in it is granted in all, and of what is in none. */
const EVERYWHERE = '-';

/**
 * Asks which of the permissions we have: by a list for each namespace, which mostly answers for all of them, and for each that no list
 * shows. One that is not answered does not cost the answers of the others.
 */
export async function review(
  reviewer: Reviewer,
  permissions: readonly Permission[],
  options: CallOptions = {},
): Promise<Review> {
  const isListed = await listed(reviewer, permissions, options);
  const allowed = new Map<Permission, boolean>(permissions.filter(isListed).map((one) => [one, true]));
  const left = permissions.filter((one) => !allowed.has(one));
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

/** Whether the server lists a permission as granted. A list that cannot be had lists nothing. */
async function listed(
  reviewer: Reviewer,
  permissions: readonly Permission[],
  options: CallOptions,
): Promise<(permission: Permission) => boolean> {
  const where = ({ attributes: { namespace = EVERYWHERE } }: Permission): string => namespace;
  const rules = new Map<string, readonly ResourceRule[]>();
  const namespaces = [...new Set(permissions.map(where))];
  await Promise.all(
    namespaces.map(async (one) => rules.set(one, await reviewer.rulesIn(one, options).catch(() => []))),
  );
  return (permission) => rules.get(where(permission))?.some((rule) => grants(rule, permission.attributes)) === true;
}

/** Those of `permissions` that we do not have. Throws ApiError when one could not be asked for. */
export async function refusedOf(...asked: Parameters<typeof review>): Promise<readonly Permission[]> {
  const { refused, unanswered, error } = await review(...asked);
  if (unanswered.length > 0) throw error;
  return refused;
}
