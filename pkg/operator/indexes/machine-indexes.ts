import { MACHINE_NAME_LABEL, NODE_LABEL } from '../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../apis/machine/v1alpha1/machine.ts';
import type { Node, VolumeAttachment } from '../../apis/wire.ts';
import type { IndexFunctions } from '../../kube/cache/store.ts';
import { present } from './present.ts';

/** Value of index `unrecorded`. */
export const UNRECORDED = 'true';

/** Indexes of Machines that lookups need: by label `node`, by provider id, by name, and those that have recorded no VM. */
export const MACHINE_INDEXES = {
  node: ({ metadata }) => present(metadata.labels?.[NODE_LABEL]),
  providerID: ({ spec }) => present(spec?.providerID),
  name: ({ metadata }) => [metadata.name],
  unrecorded: ({ spec }) => ((spec?.providerID ?? '') === '' ? [UNRECORDED] : []),
} satisfies IndexFunctions<Machine>;

/** Indexes of Nodes: by provider id, and by the Machine's name that they show. */
export const NODE_INDEXES = {
  providerID: ({ spec }) => present(spec?.providerID),
  machineName: ({ metadata }) => present(metadata.labels?.[MACHINE_NAME_LABEL]),
} satisfies IndexFunctions<Node>;

/** Indexes of VolumeAttachments: by the name of their Node, and by that of their PersistentVolume. */
export const VOLUME_ATTACHMENT_INDEXES = {
  node: ({ spec }) => present(spec.nodeName),
  persistentVolume: ({ spec }) => present(spec.source.persistentVolumeName),
} satisfies IndexFunctions<VolumeAttachment>;
