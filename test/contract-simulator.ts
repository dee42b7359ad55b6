import type { Api } from '../hack/control-plane/api.ts';
import { applyManifests } from '../hack/control-plane/apply.ts';
import {
  contractLabel,
  definitionNameOf,
  pluralOf,
  type ContractVersion,
} from '../pkg/worlds/cluster-api/api/contract.ts';
import { BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP } from '../pkg/worlds/cluster-api/api/keys.ts';
import type { KubeObject } from '../pkg/apis/meta.ts';

/** Kinds of a provider that does nothing: a test sets every field by hand. */
export const SIM_MACHINE = { apiGroup: INFRASTRUCTURE_GROUP, kind: 'SimMachine' } as const;
export const SIM_CLUSTER = { apiGroup: INFRASTRUCTURE_GROUP, kind: 'SimCluster' } as const;
export const SIM_CONTROL_PLANE = { apiGroup: CONTROL_PLANE_GROUP, kind: 'SimControlPlane' } as const;
export const SIM_CONFIG = { apiGroup: BOOTSTRAP_GROUP, kind: 'SimConfig' } as const;

/** One of them, or any other that a test makes up. */
export interface SimKind {
  readonly apiGroup: string;
  readonly kind: string;
}

/** The kind of the templates that such objects are made of. */
export function templateOf({ apiGroup, kind }: SimKind): SimKind {
  return { apiGroup, kind: `${kind}Template` };
}

/** An object of such a kind. */
export type SimObject = KubeObject & {
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
};

const VERSION = 'v1alpha7';
const OPEN = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };

/** Providers of Cluster API on a real API server, by whose contracts a test plays. */
export class ContractSimulator {
  readonly #api: Api;
  readonly #namespace: string;

  constructor(api: Api, namespace: string) {
    this.#api = api;
    this.#namespace = namespace;
  }

  /** Installs a kind that follows a contract, or none; resolves when it is served. */
  async install(kind: SimKind, contract: ContractVersion | undefined): Promise<void> {
    const plural = pluralOf(kind.kind);
    const manifest = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: {
        name: definitionNameOf(kind),
        ...(contract !== undefined && { labels: { [contractLabel(contract)]: VERSION } }),
      },
      spec: {
        group: kind.apiGroup,
        names: { kind: kind.kind, listKind: `${kind.kind}List`, plural, singular: kind.kind.toLowerCase() },
        scope: 'Namespaced',
        versions: [
          {
            name: VERSION,
            served: true,
            storage: true,
            subresources: { status: {} },
            schema: { openAPIV3Schema: { type: 'object', properties: { spec: OPEN, status: OPEN } } },
          },
        ],
      },
    };
    await applyManifests(this.#api, [manifest]);
  }

  /** Labels the definition of a kind for another contract. */
  async relabel(kind: SimKind, contract: ContractVersion): Promise<void> {
    const other = contract === 'v1beta1' ? 'v1beta2' : 'v1beta1';
    const labels = { [contractLabel(contract)]: VERSION, [contractLabel(other)]: null };
    await this.#api.send('PATCH', definitionPath(kind), { metadata: { labels } });
  }

  /** Takes a kind away, with all its objects. */
  async uninstall(kind: SimKind): Promise<void> {
    await this.#api.send('DELETE', definitionPath(kind));
  }

  async create(kind: SimKind, name: string, object: object = {}): Promise<void> {
    const { metadata = {}, ...rest } = object as { metadata?: object };
    await this.#api.send('POST', this.#path(kind), {
      apiVersion: `${kind.apiGroup}/${VERSION}`,
      kind: kind.kind,
      metadata: { name, ...metadata },
      ...rest,
    });
  }

  /** Changes what is outside of the status, as a provider or a user does. */
  async set(kind: SimKind, name: string, change: object): Promise<void> {
    await this.#api.send('PATCH', this.#path(kind, name), change);
  }

  /** What the provider reports. */
  async report(kind: SimKind, name: string, status: object): Promise<void> {
    await this.#api.send('PATCH', `${this.#path(kind, name)}/status`, { status });
  }

  /** Undefined: there is none. */
  async read(kind: SimKind, name: string): Promise<SimObject | undefined> {
    return await this.#api.find(this.#path(kind, name));
  }

  async delete(kind: SimKind, name: string): Promise<void> {
    await this.#api.send('DELETE', this.#path(kind, name));
  }

  #path(kind: SimKind, name?: string): string {
    const collection = `/apis/${kind.apiGroup}/${VERSION}/namespaces/${this.#namespace}/${pluralOf(kind.kind)}`;
    return name === undefined ? collection : `${collection}/${name}`;
  }
}

function definitionPath(kind: SimKind): string {
  return `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${definitionNameOf(kind)}`;
}
