import { ApiError } from '../../pkg/kube/client/errors.ts';

/** What ends the command with exit code 1, in one sentence. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}

/** What kubectl says of a failure; undefined when it is none of the command's, but a bug. */
export function failureText(err: unknown): string | undefined {
  if (err instanceof CommandError) return `error: ${err.message}`;
  if (!(err instanceof ApiError)) return undefined;
  const { code, reason, message, status } = err;
  if (reason === 'NotServed') {
    const remedy = 'apply the CRDs (kubectl apply --server-side -f crds/), or choose another cluster with --context';
    return `Error from server (NotFound): the server does not serve this kind of object (${message}); ${remedy}`;
  }
  if (code === 0) return `Unable to connect to the server: ${message}`;
  return `Error from server (${reason}): ${status?.message ?? message}`;
}
