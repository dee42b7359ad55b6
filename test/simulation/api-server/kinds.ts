import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import type { ListStrategies } from './patch/strategic-merge-patch.ts';
import type { Schema } from './schema/schema.ts';

/** A kind that is served, and what is special about it. */
export interface Kind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Of a CustomResourceDefinition; kinds without are built in. */
  readonly schema?: Schema;
  /** Whether `status` is written by its subresource alone. */
  readonly hasStatus: boolean;
  /** Paths of the numbers that the scale subresource shows. */
  readonly scale?: { readonly spec: readonly string[]; readonly status: readonly string[] };
  /** Whether changes of what is no metadata and no status are counted. */
  readonly hasGeneration: boolean;
  /** What a field selector may ask for. */
  readonly fields: readonly string[];
  /** How strategic merge patches change lists; undefined: there are none for the kind. */
  readonly lists?: ListStrategies;
}

const OF_ALL: ListStrategies = { finalizers: 'set', ownerReferences: { key: 'uid' } };
const NAMES = ['metadata.name', 'metadata.namespace'];

function builtIn(
  apiVersion: string,
  plural: string,
  kind: string,
  more: Partial<Pick<Kind, 'namespaced' | 'hasStatus' | 'hasGeneration' | 'fields' | 'lists'>> = {},
): Kind {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const { fields = [], lists = {}, ...rest } = more;
  return {
    group,
    version,
    plural,
    kind,
    namespaced: true,
    hasStatus: false,
    hasGeneration: false,
    ...rest,
    fields: [...NAMES, ...fields],
    lists: { ...OF_ALL, ...lists },
  };
}

const BUILT_IN: readonly Kind[] = [
  builtIn('v1', 'namespaces', 'Namespace', { namespaced: false, hasStatus: true, fields: ['status.phase'] }),
  builtIn('v1', 'nodes', 'Node', {
    namespaced: false,
    hasStatus: true,
    fields: ['spec.unschedulable'],
    lists: { conditions: { key: 'type' }, addresses: { key: 'type' } },
  }),
  builtIn('v1', 'pods', 'Pod', {
    hasStatus: true,
    fields: ['spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'status.phase', 'status.podIP'],
    lists: { conditions: { key: 'type' }, containers: { key: 'name' } },
  }),
  builtIn('v1', 'secrets', 'Secret', { fields: ['type'] }),
  builtIn('v1', 'configmaps', 'ConfigMap'),
  builtIn('v1', 'events', 'Event', {
    fields: ['involvedObject.kind', 'involvedObject.name', 'involvedObject.namespace', 'involvedObject.uid', 'reason'],
  }),
  builtIn('v1', 'persistentvolumes', 'PersistentVolume', { namespaced: false, hasStatus: true }),
  builtIn('v1', 'persistentvolumeclaims', 'PersistentVolumeClaim', { hasStatus: true }),
  builtIn('coordination.k8s.io/v1', 'leases', 'Lease'),
  builtIn('storage.k8s.io/v1', 'volumeattachments', 'VolumeAttachment', { namespaced: false, hasStatus: true }),
  builtIn('policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget', {
    hasStatus: true,
    hasGeneration: true,
    lists: { conditions: { key: 'type' } },
  }),
];

interface Definition {
  readonly spec: {
    readonly group: string;
    readonly names: { readonly kind: string; readonly plural: string };
    readonly scope: 'Namespaced' | 'Cluster';
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
      readonly subresources?: {
        readonly status?: object;
        readonly scale?: { readonly specReplicasPath: string; readonly statusReplicasPath: string };
      };
    }[];
  };
}

function custom({ spec }: Definition): Kind[] {
  const { group, names, scope, versions } = spec;
  return versions.map(({ name: version, schema, subresources = {} }) => {
    const { status, scale } = subresources;
    const path = (text: string): string[] => text.split('.').slice(1);
    return {
      group,
      version,
      plural: names.plural,
      kind: names.kind,
      namespaced: scope === 'Namespaced',
      schema: schema.openAPIV3Schema,
      hasStatus: status !== undefined,
      ...(scale && { scale: { spec: path(scale.specReplicasPath), status: path(scale.statusReplicasPath) } }),
      hasGeneration: true,
      fields: NAMES,
    };
  });
}

/** The kinds built in, and those that the definitions in a folder add. */
export function kindsWith(folder: string): readonly Kind[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  const definitions = files.map((name) => parse(readFileSync(join(folder, name), 'utf8')) as Definition);
  return [...BUILT_IN, ...definitions.flatMap(custom)];
}

/** `apiVersion` of a kind. */
export function apiVersionOf({ group, version }: Pick<Kind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}
