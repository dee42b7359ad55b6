import { NODE_INDEXES, VOLUME_ATTACHMENT_INDEXES } from '../indexes/machine-indexes.ts';
import { nodes, volumeAttachments } from '../../kube/client/resource.ts';
import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import { trimNode, trimVolumeAttachment } from '../../kube/targets/trim.ts';
import { cached } from './kind.ts';

/** The kinds of each target cluster. */
export const TARGET_KINDS = {
  nodes: cached(nodes, () => ({ indexes: NODE_INDEXES, transform: trimNode })),
  volumeAttachments: cached(volumeAttachments, ({ leases }) =>
    leases.has(MACHINE_LEASE) ? { indexes: VOLUME_ATTACHMENT_INDEXES, transform: trimVolumeAttachment } : undefined,
  ),
};
