import type { APIAnswer, APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import { builtIn, custom, type Definition, type Kind } from '../api-server/kinds.ts';
import { SERVER_SIDE_APPLY } from '../api-server/patch/patched.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import { AGE, NAME } from '../api-server/table/column.ts';

/** CustomResourceDefinitions, as objects. */
export const DEFINITION_KIND: Kind = builtIn(
  'apiextensions.k8s.io/v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
  { namespaced: false, columns: [NAME, AGE] },
);

/** Whether a request applies a definition. */
export function appliesDefinition({ path, contentType = '' }: APIRequest): boolean {
  return (
    contentType.startsWith(SERVER_SIDE_APPLY) &&
    path.startsWith('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/')
  );
}

/** Stores a definition, and serves what it defines from now on: `kinds` are those of the server. */
export function define(server: SimulatedAPIServer, kinds: Kind[], request: APIRequest): APIAnswer {
  const definition = request.body as StoredObject & Definition;
  const status = { conditions: [{ type: 'Established', status: 'True' }] };
  const answer = upserted(server, { ...request, body: { ...definition, status } });
  for (const kind of custom(definition)) {
    const known = kinds.some(
      ({ group, version, plural }) => group === kind.group && version === kind.version && plural === kind.plural,
    );
    if (!known) kinds.push(kind);
  }
  return answer;
}

/** One applies them, and always whole: what there is is replaced. */
function upserted(server: SimulatedAPIServer, { path, body }: APIRequest): APIAnswer {
  const [url = ''] = path.split('?', 1);
  const replaced = server.handle({ method: 'PUT', path: url, body });
  if (replaced.code !== 404) return replaced;
  return server.handle({ method: 'POST', path: url.slice(0, url.lastIndexOf('/')), body });
}
