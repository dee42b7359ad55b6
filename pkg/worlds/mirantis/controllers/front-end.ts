import type { KubeObject } from '../../../apis/meta.ts';
import { PROVIDER_LABEL } from '../api/machine.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { requeue, type StepResult } from '../../../work/reconcile/result.ts';

/** The provider whose objects are served; those of others are left alone. */
export const SERVED_PROVIDER = 'openstack';
/** What is not watched is looked at again so often, when something is wrong or missing. */
const RECHECK_MS = 5_000;

export function isServed({ metadata: { labels } }: KubeObject): boolean {
  return labels?.[PROVIDER_LABEL] === SERVED_PROVIDER;
}

/** Whether the API server, or a webhook, refuses what an object asks for, or the webhook does not work: that is told on the object. */
export function isRequestRejected(err: unknown): err is ApiError {
  return ApiError.is(err, 'Forbidden', 'Invalid', 'BadRequest', 'InternalError');
}

/** Tries again although nothing may wake the pass. */
export function checkAgain(what: string): StepResult {
  return requeue(RECHECK_MS, what);
}
