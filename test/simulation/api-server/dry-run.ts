import type { APIRequest } from './api-server.ts';
import { invalid } from './failure.ts';
import { isMembers } from './json.ts';

const OPTIONS: Readonly<Record<string, string>> = {
  POST: 'CreateOptions',
  PUT: 'UpdateOptions',
  PATCH: 'PatchOptions',
  DELETE: 'DeleteOptions',
};

/** Whether a request asks that nothing is stored. Throws a Failure. */
export function isDryRun({ method, body }: APIRequest, query: URLSearchParams): boolean {
  const kind = OPTIONS[method];
  if (kind === undefined) return false;
  const ofBody = method === 'DELETE' && isMembers(body) ? body['dryRun'] : undefined;
  const given = Array.isArray(ofBody) ? ofBody.map(String) : query.getAll('dryRun');
  const [unknown] = given.filter((value) => value !== 'All');
  if (unknown === undefined) return given.length > 0;
  throw invalid({ group: 'meta.k8s.io', kind }, '', [
    {
      reason: 'FieldValueNotSupported',
      message: `Unsupported value: "${unknown}": supported values: "All"`,
      field: 'dryRun',
    },
  ]);
}
