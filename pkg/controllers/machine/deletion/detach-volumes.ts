import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import { next, requeue } from '../../../reconcile/result.ts';
import type { MachineStep } from '../context.ts';
import { advance, isAt, isNodeAbandoned, untilRecorded } from './cursor.ts';
import { textOfStage } from './stage.ts';

/** When to look again for VolumeAttachments that came since. */
const RETRY_MS = 5_000;

/**
 * After a forced drain: deletes the VolumeAttachments of the Node, so that its volumes can be attached elsewhere before the
 * machine is gone. That they are really detached is not awaited.
 */
export const detachVolumes: MachineStep = {
  name: 'detach-volumes',

  async run(ctx) {
    const { machine, nodes, signal, log } = ctx;
    if (!isAt(ctx, 'detach-volumes')) return next;
    const name = machine.metadata.labels?.[NODE_LABEL] ?? '';
    const attached = isNodeAbandoned(ctx) ? [] : (nodes?.attachments(name) ?? []);
    if (nodes === undefined || attached.length === 0) {
      advance(ctx, 'delete-vm', textOfStage(machine.status.lastOperation?.description ?? ''));
      return next;
    }
    const unrecorded = untilRecorded(ctx, 'detach-volumes');
    if (unrecorded !== undefined) return unrecorded;

    const results = await Promise.allSettled(attached.map((attachment) => nodes.detach(attachment, signal)));
    for (const result of results) {
      if (result.status === 'rejected')
        log.warn({ err: result.reason, node: name }, 'could not delete a VolumeAttachment');
    }
    return requeue(RETRY_MS, 'VolumeAttachments to go');
  },
};
