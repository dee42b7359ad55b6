import { NODE_INDEXES, VOLUME_ATTACHMENT_INDEXES } from '../../indexes/machine-indexes.ts';
import { nodes, volumeAttachments } from '../../kube/resource.ts';
import { MACHINE_LEASE } from '../../leader/names.ts';
import { trimNode, trimVolumeAttachment } from '../../targets/trim.ts';
import { cached } from './kind.ts';

/** What VMs become in the target cluster, which every process looks at that has one. */
export const TARGET_NODES = cached(nodes, () => ({ indexes: NODE_INDEXES, transform: trimNode }));

/** The other kinds of the target cluster. */
export const TARGET_KINDS = {
  volumeAttachments: cached(volumeAttachments, ({ leases }) =>
    leases.has(MACHINE_LEASE) ? { indexes: VOLUME_ATTACHMENT_INDEXES, transform: trimVolumeAttachment } : undefined,
  ),
};
