import { ApiError } from '../../kube/client/errors.ts';

/** What a target answers that may send anything. Throws ApiError. */
export function requireUID(uid: unknown): string {
  if (typeof uid === 'string' && uid !== '') return uid;
  throw new ApiError(502, 'BadGateway', 'Namespace kube-system of the target cluster has no UID');
}
