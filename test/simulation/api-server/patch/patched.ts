import type { APIRequest } from '../api-server.ts';
import { badRequest, Failure, invalid } from '../failure.ts';
import { isMembers, type Members } from '../json.ts';
import type { Kind } from '../kinds.ts';
import type { StoredObject } from '../stored-object.ts';
import { jsonPatched, JsonPatchError } from './json-patch.ts';
import { mergePatched } from './merge-patch.ts';
import { strategicallyPatched } from './strategic-merge-patch.ts';

/** Content type of a PATCH that is no patch, but an apply. */
export const SERVER_SIDE_APPLY = 'application/apply-patch+yaml';

/** The object that a PATCH asks for. Throws a Failure. */
export function patched(kind: Kind, old: StoredObject, request: APIRequest): StoredObject {
  const wanted = patchedValue(kind, old, request);
  if (!isMembers(wanted)) throw badRequest('the patch does not make an object');
  return wanted as StoredObject;
}

/** The same of what is no object of the server, such as a Scale. Throws a Failure. */
export function patchedValue(kind: Kind, value: object, { body, contentType = '' }: APIRequest): unknown {
  switch (contentType.split(';')[0]) {
    case 'application/merge-patch+json':
      return mergePatched(value, body);
    case 'application/strategic-merge-patch+json':
      if (kind.lists === undefined) throw unsupportedPatch();
      return strategicallyPatched(value, body as Members, kind.lists);
    case 'application/json-patch+json':
      return afterJsonPatch(value, body);
    default:
      throw unsupportedPatch();
  }
}

function unsupportedPatch(): Failure {
  const types = 'application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml';
  return new Failure(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${types}`,
  );
}

function afterJsonPatch(value: object, body: unknown): unknown {
  if (!Array.isArray(body)) throw badRequest('a JSON patch is a list of operations');
  try {
    return jsonPatched(value, body);
  } catch (err) {
    if (!(err instanceof JsonPatchError)) throw err;
    // As the API server says it: no kind, no name.
    throw invalid({ kind: '', group: '' }, '', [{ reason: 'FieldValueInvalid', message: err.message }]);
  }
}
