import { shortText } from '../../apis/short-text.ts';
import type { ApiError } from '../../kube/client/errors.ts';

/** What is told of a change, or of the read before it, that the API server, a policy or a webhook refuses. */
export function describeRefusedChange(err: ApiError): string {
  const request = err.object === undefined ? 'A request' : `A change of ${err.object}`;
  return `${request} is refused, and retried: ${shortText(err.message)}`;
}
