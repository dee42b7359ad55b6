import type {
  CoreV1Event,
  V1ConfigMap,
  V1Lease,
  V1Node,
  V1NodeCondition,
  V1NodeSpec,
  V1PersistentVolume,
  V1PersistentVolumeClaim,
  V1Pod,
  V1PodDisruptionBudget,
  V1Secret,
  V1Taint,
  V1VolumeAttachment,
} from '@kubernetes/client-node';

import type { ObjectMeta } from './meta.ts';

/** A client-node model as it is on the wire: timestamps are strings, both from lists and from watches. */
export type Wire<T> = T extends Date
  ? string
  : T extends (infer U)[]
    ? Wire<U>[]
    : T extends object
      ? { [K in keyof T]: Wire<T[K]> }
      : T;

/** A core object as the server returns it: the metadata that we rely on is always there. */
type Served<T> = Omit<Wire<T>, 'metadata'> & { metadata: ObjectMeta };

export type Node = Served<V1Node>;
export type NodeSpec = Wire<V1NodeSpec>;
export type NodeCondition = Wire<V1NodeCondition>;
export type Taint = Wire<V1Taint>;
export type ConfigMap = Served<V1ConfigMap>;
export type Pod = Served<V1Pod>;
export type Secret = Served<V1Secret>;
export type Lease = Served<V1Lease>;
export type Event = Served<CoreV1Event>;
export type PodDisruptionBudget = Served<V1PodDisruptionBudget>;
export type PersistentVolume = Served<V1PersistentVolume>;
export type PersistentVolumeClaim = Served<V1PersistentVolumeClaim>;
export type VolumeAttachment = Served<V1VolumeAttachment>;
