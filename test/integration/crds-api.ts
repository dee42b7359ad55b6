import type { Api, ApiAnswer } from '../../hack/control-plane/api.ts';
import type { Connection } from '../../hack/control-plane/connection.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import {
  machineClasses,
  nodeLabelPolicies,
  machineDeployments,
  machines,
  machineSets,
  pathOf,
} from '../../pkg/kube/client/resource.ts';
import type { Resource } from '../../pkg/apis/resource.ts';

/** Any of the four kinds, as far as requests need it. */
export interface Item {
  kind?: string;
  metadata: { name: string };
}

const RESOURCES: readonly Resource<KubeObject>[] = [
  machines,
  machineSets,
  machineDeployments,
  machineClasses,
  nodeLabelPolicies,
];

const MERGE_PATCH = 'application/merge-patch+json';

/** Plain requests for objects of the four kinds in one namespace; every answer is handed back, whatever its status. */
export class CrdsApi {
  readonly #api: Api;
  readonly #namespace: string;

  constructor(connection: Connection, namespace: string) {
    this.#api = connection.api();
    this.#namespace = namespace;
  }

  /** POST; unknown fields are refused. */
  create(item: Item, query = ''): Promise<ApiAnswer> {
    const path = pathOf(resourceOf(item), this.#namespace);
    return this.#api.request(`${path}?fieldValidation=Strict${query}`, { method: 'POST', body: item });
  }

  /** POST of something that a test starts from. Throws when it is refused. */
  async createAll(items: readonly Item[]): Promise<void> {
    for (const item of items) {
      const { status, body } = await this.create(item);
      if (status !== 201) throw new Error(`creating ${item.kind} ${item.metadata.name}: ${JSON.stringify(body)}`);
    }
  }

  get(item: Item, subresource?: string): Promise<ApiAnswer> {
    return this.#api.request(this.#pathOf(item, subresource));
  }

  /** PUT; unknown fields are refused. */
  replace(item: Item, body: unknown, { subresource, query = '' }: { subresource?: string; query?: string } = {}) {
    const path = this.#pathOf(item, subresource);
    return this.#api.request(`${path}?fieldValidation=Strict${query}`, { method: 'PUT', body });
  }

  /** JSON merge patch. */
  patch(item: Item, body: unknown, subresource?: string): Promise<ApiAnswer> {
    return this.#api.request(this.#pathOf(item, subresource), { method: 'PATCH', body, contentType: MERGE_PATCH });
  }

  delete(item: Item): Promise<ApiAnswer> {
    return this.#api.request(this.#pathOf(item), { method: 'DELETE' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#api.close();
  }

  #pathOf(item: Item, subresource?: string): string {
    return pathOf(resourceOf(item), this.#namespace, item.metadata.name, subresource);
  }
}

function resourceOf({ kind }: Item): Resource<KubeObject> {
  const found = RESOURCES.find((resource) => resource.kind === kind);
  if (found === undefined) throw new Error(`no kind ${kind}`);
  return found;
}

/** What the server refused, field by field; the path of the scale subresource begins with a dot, those of rules do not. */
export function causesOf({ body }: ApiAnswer): readonly { field?: string; message?: string }[] {
  const { details } = body as { details?: { causes?: { field?: string; message?: string }[] } };
  return (details?.causes ?? []).map((cause) => ({ ...cause, field: cause.field?.replace(/^\./, '') ?? '' }));
}
