import { shortText } from '../../apis/short-text.ts';
import type { ApiError } from '../../kube/client/errors.ts';

/** What is told of a change that the API server, a policy or a webhook refuses. */
export function describeRefusedChange(err: ApiError): string {
  return `A change of ${err.object ?? 'an object'} is refused, and retried: ${shortText(err.message)}`;
}
