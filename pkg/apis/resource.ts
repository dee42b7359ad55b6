import type { KubeObject } from './meta.ts';

/** Where objects of type T live in the API. The type parameter is carried by `_type`, which never exists at run time. */
export interface Resource<T extends KubeObject> {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Makes an object from the server what T says, in place, where its definition may have stored something else. */
  normalise?(object: T): T;
  /** What is sent for such an object, or a part of one, where that differs from what T says. */
  toWire?(object: object): object;
  /** The same objects in an older version, for where this one is not served. */
  readonly older?: Resource<T>;
  /** The files of this project that define it, and let a process use it. */
  readonly shipped?: ShippedFiles;
  readonly _type?: T;
}

/** Paths from the root of the project. */
export interface ShippedFiles {
  /** Folder of its CustomResourceDefinition; Kubernetes has it, or others ship it, without one. */
  readonly definitions?: string;
  /** The file that grants what is done with it; that of the process without it. */
  readonly roles?: string;
}

/** What of a resource differs from the others of its group; it is namespaced unless `namespaced` is false. */
type Traits<T extends KubeObject> = Partial<Pick<Resource<T>, 'namespaced' | 'normalise' | 'toWire' | 'older'>>;

/** Defines resources of a group in a version, with the files that are shipped for them. */
export function resourcesOf(group: string, version: string, shipped?: ShippedFiles) {
  return <T extends KubeObject>(plural: string, kind: string, more: Traits<T> = {}): Resource<T> =>
    Object.freeze({ group, version, plural, kind, namespaced: true, ...(shipped && { shipped }), ...more });
}
