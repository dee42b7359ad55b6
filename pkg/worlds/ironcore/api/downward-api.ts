import type { ObjectMeta } from '../../../apis/meta.ts';

/** A field of an object's metadata, as Kubernetes' downward API names it. */
export interface MetadataField {
  readonly field: 'name' | 'namespace' | 'uid' | 'labels' | 'annotations';
  /** Of labels and annotations. */
  readonly key: string;
}

/** By the names under which a runtime is told of them. */
export type DownwardFields = ReadonlyMap<string, MetadataField>;

/** What runtimes are told of objects of IronCore beside their names. */
export interface DownwardAPI {
  readonly machineLabels: DownwardFields;
  readonly machineAnnotations: DownwardFields;
  readonly volumeLabels: DownwardFields;
  readonly networkInterfaceLabels: DownwardFields;
  readonly networkLabels: DownwardFields;
}

export const NO_DOWNWARD_API: DownwardAPI = {
  machineLabels: new Map(),
  machineAnnotations: new Map(),
  volumeLabels: new Map(),
  networkInterfaceLabels: new Map(),
  networkLabels: new Map(),
};

/** `metadata.name`, `metadata.labels['key']` and the like; undefined: something else. */
export function parseFieldPath(text: string): MetadataField | undefined {
  const [, plain] = /^metadata\.(name|namespace|uid)$/.exec(text) ?? [];
  if (plain !== undefined) return { field: plain as MetadataField['field'], key: '' };
  const [, map, key] = /^metadata\.(labels|annotations)\['([^']+)'\]$/.exec(text) ?? [];
  return map === undefined || key === undefined ? undefined : { field: map as MetadataField['field'], key };
}

/** The values of fields, by name. A label or an annotation that is not there is empty. */
export function downwardValues(
  fields: DownwardFields,
  metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid' | 'labels' | 'annotations'>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    [...fields].map(([name, { field, key }]) => {
      if (field === 'labels' || field === 'annotations') return [name, metadata[field]?.[key] ?? ''];
      return [name, metadata[field] ?? ''];
    }),
  );
}
