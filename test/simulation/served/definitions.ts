import type { APIAnswer, APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import { builtIn, custom, type Definition, type Kind } from '../api-server/kinds.ts';
import type { StoredObject } from '../api-server/stored-object.ts';
import { AGE, NAME } from '../api-server/table/column.ts';
import { upserted } from './upsert.ts';

/** CustomResourceDefinitions, as objects. */
export const DEFINITION_KIND: Kind = builtIn(
  'apiextensions.k8s.io/v1',
  'customresourcedefinitions',
  'CustomResourceDefinition',
  { namespaced: false, columns: [NAME, AGE] },
);

/** Whether a request applies a definition. */
export function appliesDefinition({ path }: APIRequest): boolean {
  return path.startsWith('/apis/apiextensions.k8s.io/v1/customresourcedefinitions/');
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
