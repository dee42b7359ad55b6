import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import type { ListStrategies } from './patch/strategic-merge-patch.ts';
import type { Schema } from './schema/schema.ts';
import { builtInColumns } from './table/built-in-columns.ts';
import { type Column, customColumns, type PrinterColumn } from './table/column.ts';

/** A kind that is served, and what is special about it. */
export interface Kind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly singular: string;
  readonly kind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** What `kubectl get` shows. */
  readonly columns: readonly Column[];
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

/** Of the metadata of every object. */
export const METADATA_LISTS: ListStrategies = { finalizers: 'set', ownerReferences: { key: 'uid' } };
const NAMES = ['metadata.name', 'metadata.namespace'];

export function builtIn(
  apiVersion: string,
  plural: string,
  kind: string,
  more: Partial<Omit<Kind, 'group' | 'version' | 'plural' | 'singular' | 'kind' | 'schema'>> = {},
): Kind {
  const [version = '', group = ''] = apiVersion.split('/').toReversed();
  const { fields = [], lists = {}, columns = builtInColumns(plural), ...rest } = more;
  return {
    group,
    version,
    plural,
    singular: kind.toLowerCase(),
    kind,
    shortNames: [],
    categories: [],
    namespaced: true,
    columns,
    hasStatus: false,
    hasGeneration: false,
    ...rest,
    fields: [...NAMES, ...fields],
    lists: { ...METADATA_LISTS, ...lists },
  };
}

export const BUILT_IN: readonly Kind[] = [
  builtIn('v1', 'namespaces', 'Namespace', {
    shortNames: ['ns'],
    namespaced: false,
    hasStatus: true,
    fields: ['status.phase'],
  }),
  builtIn('v1', 'nodes', 'Node', {
    shortNames: ['no'],
    namespaced: false,
    hasStatus: true,
    fields: ['spec.unschedulable'],
    lists: { conditions: { key: 'type' }, addresses: { key: 'type' } },
  }),
  builtIn('v1', 'pods', 'Pod', {
    shortNames: ['po'],
    hasStatus: true,
    fields: ['spec.nodeName', 'spec.restartPolicy', 'spec.schedulerName', 'status.phase', 'status.podIP'],
    lists: { conditions: { key: 'type' }, containers: { key: 'name' } },
  }),
  builtIn('v1', 'secrets', 'Secret', { fields: ['type'] }),
  builtIn('v1', 'configmaps', 'ConfigMap', { shortNames: ['cm'] }),
  builtIn('v1', 'events', 'Event', {
    shortNames: ['ev'],
    fields: [
      ...['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
        (one) => `involvedObject.${one}`,
      ),
      'reason',
      'reportingComponent',
      'type',
    ],
  }),
  builtIn('v1', 'persistentvolumes', 'PersistentVolume', { shortNames: ['pv'], namespaced: false, hasStatus: true }),
  builtIn('v1', 'persistentvolumeclaims', 'PersistentVolumeClaim', { shortNames: ['pvc'], hasStatus: true }),
  builtIn('coordination.k8s.io/v1', 'leases', 'Lease'),
  builtIn('storage.k8s.io/v1', 'volumeattachments', 'VolumeAttachment', { namespaced: false, hasStatus: true }),
  builtIn('policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget', {
    shortNames: ['pdb'],
    hasStatus: true,
    hasGeneration: true,
    lists: { conditions: { key: 'type' } },
  }),
];

/** A CustomResourceDefinition. */
export interface Definition {
  readonly spec: {
    readonly group: string;
    readonly names: {
      readonly kind: string;
      readonly plural: string;
      readonly singular?: string;
      readonly shortNames?: readonly string[];
      readonly categories?: readonly string[];
    };
    readonly scope: 'Namespaced' | 'Cluster';
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: Schema };
      readonly additionalPrinterColumns?: readonly PrinterColumn[];
      readonly subresources?: {
        readonly status?: object;
        readonly scale?: { readonly specReplicasPath: string; readonly statusReplicasPath: string };
      };
    }[];
  };
}

/** The kinds that a definition adds, one for each version. */
export function custom({ spec }: Definition): Kind[] {
  const { group, names, scope, versions } = spec;
  const { kind, plural, singular = kind.toLowerCase(), shortNames = [], categories = [] } = names;
  return versions.map(({ name: version, schema, additionalPrinterColumns, subresources = {} }) => {
    const { status, scale } = subresources;
    const path = (text: string): string[] => text.split('.').slice(1);
    return {
      group,
      version,
      plural,
      singular,
      kind,
      shortNames,
      categories,
      namespaced: scope === 'Namespaced',
      columns: customColumns(additionalPrinterColumns),
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
  return [...BUILT_IN, ...definitionsIn(folder).flatMap(custom)];
}

/** The definitions in a folder. */
export function definitionsIn(folder: string): readonly Definition[] {
  const files = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
  return files.map((name) => parse(readFileSync(join(folder, name), 'utf8')) as Definition);
}

/** `apiVersion` of a kind. */
export function apiVersionOf({ group, version }: Pick<Kind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}
