import path from 'node:path';

import { readManifests, type Manifest } from '../../hack/control-plane/apply.ts';
import {
  CLUSTER_API_GROUP,
  CLUSTER_API_VERSION,
  OLDER_CLUSTER_API_VERSION,
} from '../../pkg/worlds/cluster-api/api/keys.ts';
import type { KubeObject } from '../../pkg/apis/meta.ts';
import { apiVersionOf } from '../../pkg/kube/client/resource.ts';
import type { Resource } from '../../pkg/apis/resource.ts';
import { clusterAPIClusters, clusterAPIMachines } from '../../pkg/worlds/cluster-api/api/resources.ts';
import { definitions } from './contestant.ts';

interface Definition extends Manifest {
  readonly spec: { readonly group: string; readonly versions: readonly { readonly name: string }[] };
}

/** One version of Cluster API's kinds, the only one that an API server serves: how a test reads and writes them there. */
export class Dialect {
  readonly version: string;
  readonly #resources: readonly Resource<KubeObject>[];
  readonly #definitions: () => Promise<readonly Manifest[]>;

  constructor(version: string, definitionsOf: () => Promise<readonly Manifest[]>) {
    this.version = version;
    this.#resources = [clusterAPIMachines, clusterAPIClusters].flatMap((newest: Resource<KubeObject>) =>
      [newest, newest.older].filter((one) => one?.version === version).map((one) => one ?? newest),
    );
    this.#definitions = definitionsOf;
  }

  get apiVersion(): string {
    return `${CLUSTER_API_GROUP}/${this.version}`;
  }

  /** The kinds, in this version only. */
  async definitions(): Promise<readonly Manifest[]> {
    return await this.#definitions();
  }

  /** Path of a collection. */
  pathOf(namespace: string, plural: string): string {
    return `/apis/${this.apiVersion}/namespaces/${namespace}/${plural}`;
  }

  /** What is sent for an object, or a part of one, that is written as the newest version has it. */
  wire(plural: string, object: object): object {
    return this.#resourceOf(plural)?.toWire?.(object) ?? object;
  }

  /** An object of this version, as the newest one has it. */
  read<T extends KubeObject>(plural: string, object: T): T {
    const resource = this.#resourceOf(plural) as Resource<T> | undefined;
    return resource?.normalise?.(object) ?? object;
  }

  #resourceOf(plural: string): Resource<KubeObject> | undefined {
    return this.#resources.find((one) => one.plural === plural && apiVersionOf(one) === this.apiVersion);
  }
}

/** Ours, of the newest version. */
async function ownDefinitions(): Promise<readonly Manifest[]> {
  return await Promise.resolve(readManifests(path.join(import.meta.dirname, '../../crds/cluster-api')));
}

/** Those of Cluster API itself, as they would be if a version were the only one. */
export async function definitionsIn(version: string): Promise<readonly Manifest[]> {
  const all = (await definitions()) as readonly Definition[];
  return all
    .filter(({ spec }) => spec.group === CLUSTER_API_GROUP)
    .map(({ spec, ...rest }) => ({
      ...rest,
      spec: {
        ...spec,
        versions: spec.versions
          .filter(({ name }) => name === version)
          .map((one) => ({ ...one, served: true, storage: true, deprecated: false })),
      },
    }));
}

/** All that are understood: the newest one with our definitions, the older one with those of Cluster API. */
export const DIALECTS: readonly Dialect[] = [
  new Dialect(CLUSTER_API_VERSION, ownDefinitions),
  new Dialect(OLDER_CLUSTER_API_VERSION, () => definitionsIn(OLDER_CLUSTER_API_VERSION)),
];
