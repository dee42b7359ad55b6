import type { Cluster } from '../kube/gate/gate.ts';
import { CannotStartError } from './process/lifecycle.ts';

/**
 * Resolves when all have started. Rejects only when all have ended: with one CannotStartError that names everything which has to be
 * mended, or else with what the first was rejected with.
 */
export async function startTogether(starts: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(starts);
  const errors = outcomes.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  const [first] = errors;
  if (errors.length === 0) return;
  const toMend = errors.filter((err) => err instanceof CannotStartError);
  if (toMend.length < errors.length) throw first;
  throw new CannotStartError([...new Set(toMend.map(({ message }) => message))].join('; '), { cause: first });
}

/** No role helps one whom the server does not know. */
export function describeUnauthorized(cluster: Cluster, { message }: Error): string {
  return `the ${cluster} cluster rejects the credentials of its kubeconfig; correct them (${message})`;
}
