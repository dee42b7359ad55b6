import type { APIAnswer, APIRequest, SimulatedAPIServer } from '../api-server/api-server.ts';
import { apiVersionOf, builtIn, custom, type Definition, type Kind } from '../api-server/kinds.ts';
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

/** Of each definition, until no object of its kinds is left. */
const CLEANUP = 'customresourcecleanup.apiextensions.k8s.io';

/** Those who watch definitions know that one is gone before watches on its kinds end. */
const WATCHES_END_MS = 100;

/** Calls `run` after a while, which is zero unless told otherwise. */
type Later = (run: () => void, delayMs?: number) => void;

/** Serves the kinds of definitions that are applied, and ceases to when a definition is deleted and its objects are gone. */
export class Definitions {
  readonly #server: SimulatedAPIServer;
  readonly #kinds: Kind[];
  readonly #later: Later;

  /** `kinds`: those of the server. `later` calls what follows from a change when all who listen have it. */
  constructor(server: SimulatedAPIServer, kinds: Kind[], later: Later) {
    this.#server = server;
    this.#kinds = kinds;
    this.#later = later;
    server.objects.onChange((kind, { type, object }) => {
      if (kind === DEFINITION_KIND && type === 'MODIFIED' && isLeaving(object)) later(() => this.#empty(object));
      else if (type === 'DELETED') later(() => this.#withdrawIfEmpty(kind));
    });
  }

  /** Stores the definitions of kinds that are served from the start. */
  store(definitions: readonly Definition[]): void {
    for (const definition of definitions) {
      const { name } = (definition as StoredObject & Definition).metadata;
      this.#store(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${name}`, definition);
    }
  }

  /** Stores a definition, and serves its kinds. */
  apply(request: APIRequest): APIAnswer {
    const definition = request.body as StoredObject & Definition;
    const answer = this.#store(request.path, definition);
    for (const kind of custom(definition)) {
      if (!this.#kinds.some((one) => isSame(one, kind) && one.version === kind.version)) this.#kinds.push(kind);
    }
    return answer;
  }

  #store(path: string, definition: Definition): APIAnswer {
    const metadata = { ...(definition as StoredObject & Definition).metadata, finalizers: [CLEANUP] };
    const status = { conditions: [{ type: 'Established', status: 'True' }] };
    return upserted(this.#server, path, { ...definition, metadata, status });
  }

  #empty(definition: StoredObject): void {
    for (const kind of this.#kindsOf(definition)) {
      this.#server.objects.ending.add(kind);
      for (const { metadata } of this.#server.objects.of(kind).list()) {
        const scope = metadata.namespace === undefined ? '' : `/namespaces/${metadata.namespace}`;
        const path = `/apis/${apiVersionOf(kind)}${scope}/${kind.plural}/${metadata.name}`;
        this.#server.handle({ method: 'DELETE', path });
      }
      this.#withdrawIfEmpty(kind);
    }
  }

  #withdrawIfEmpty(kind: Kind): void {
    const { objects } = this.#server;
    const definition = objects
      .of(DEFINITION_KIND)
      .list()
      .find((one) => isLeaving(one) && this.#kindsOf(one).includes(kind));
    if (definition === undefined) return;
    const kinds = this.#kindsOf(definition);
    if (kinds.some((one) => objects.of(one).list().length > 0)) return;
    for (const one of kinds) {
      this.#kinds.splice(this.#kinds.indexOf(one), 1);
      objects.ending.delete(one);
    }
    objects.remove(DEFINITION_KIND, definition);
    this.#later(() => kinds.forEach((one) => objects.withdraw(one)), WATCHES_END_MS);
  }

  #kindsOf(definition: StoredObject): readonly Kind[] {
    const defined = custom(definition as StoredObject & Definition);
    return this.#kinds.filter((kind) => defined.some((one) => isSame(one, kind)));
  }
}

function isLeaving({ metadata }: StoredObject): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.finalizers?.includes(CLEANUP) === true;
}

function isSame(one: Kind, other: Kind): boolean {
  return one.group === other.group && one.plural === other.plural;
}

/** One applies them, and always whole: what there is is replaced. */
function upserted(server: SimulatedAPIServer, path: string, body: object): APIAnswer {
  const [url = ''] = path.split('?', 1);
  const replaced = server.handle({ method: 'PUT', path: url, body });
  if (replaced.code !== 404) return replaced;
  return server.handle({ method: 'POST', path: url.slice(0, url.lastIndexOf('/')), body });
}
