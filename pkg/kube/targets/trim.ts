import type { Node, VolumeAttachment } from '../../apis/wire.ts';

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
export function trimVolumeAttachment({ metadata, spec, status }: VolumeAttachment): VolumeAttachment {
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
