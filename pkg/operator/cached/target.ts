import type { Node, VolumeAttachment } from '../../apis/wire.ts';
import { NODE_INDEXES, VOLUME_ATTACHMENT_INDEXES } from '../indexes/machine-indexes.ts';
import { nodes, volumeAttachments } from '../../kube/client/resource.ts';
import { MACHINE_LEASE } from '../../kube/leader/names.ts';
import { cached } from './kind.ts';

/** The kinds of each target cluster. */
export const TARGET_KINDS = {
  nodes: cached(nodes, () => ({ indexes: NODE_INDEXES, transform: trimNode })),
  volumeAttachments: cached(volumeAttachments, ({ leases }) =>
    leases.has(MACHINE_LEASE) ? { indexes: VOLUME_ATTACHMENT_INDEXES, transform: trimVolumeAttachment } : undefined,
  ),
};

/** What no decision needs of a Node is not kept: images are most of its size. */
export function trimNode({ status, ...node }: Node): Node {
  if (status === undefined) return node;
  const { conditions, addresses, capacity, allocatable, volumesAttached, nodeInfo } = status;
  return {
    ...node,
    status: {
      ...(conditions && { conditions }),
      ...(addresses && { addresses }),
      ...(capacity && { capacity }),
      ...(allocatable && { allocatable }),
      ...(volumesAttached && { volumesAttached }),
      ...(nodeInfo && { nodeInfo }),
    },
  };
}

/** Of a VolumeAttachment only which volume is attached where, and whether it is. */
function trimVolumeAttachment({ metadata, spec, status }: VolumeAttachment): VolumeAttachment {
  return {
    metadata,
    spec: {
      attacher: spec.attacher,
      nodeName: spec.nodeName,
      source:
        spec.source.persistentVolumeName === undefined
          ? {}
          : { persistentVolumeName: spec.source.persistentVolumeName },
    },
    ...(status && { status: { attached: status.attached } }),
  };
}
