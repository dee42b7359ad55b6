import { nodeNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import type { VolumeAttachment } from '../../../apis/wire.ts';
import { GateClosedError } from '../../../kube/gate/gate.ts';
import { next, requeue, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import { textOfStage } from '../../machine-facts/deletion-stage.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { isAt, untilRecorded } from './cursor.ts';

/** When to try again to delete VolumeAttachments, and to look for ones that came since. */
const RETRY_MS = 5_000;

type Deps = Pick<Collaborators, 'clock' | 'settings' | 'cursor'>;

/** With the deletions whose VolumeAttachments could not be deleted: since when (monotonic), by the UID of their Machine. */
type Own = Deps & { readonly detaching: Map<string, number> };

/**
 * After a forced drain: deletes the VolumeAttachments of the Node, so that its volumes can be attached elsewhere before the
 * machine is gone. That they are really detached is not awaited. Attachments to a Node that is not this machine's, though it has
 * its name, are left alone. Those that cannot be deleted are told of, and given up after the PV detach timeout: a VM that is
 * gone holds no volume.
 */
export const detachVolumes = (collaborators: Deps): MachineStep => {
  const deps: Own = { ...collaborators, detaching: new Map() };
  return {
    name: 'detach-volumes',
    run: (ctx) => reconcile(deps, ctx),
    forget: (uid) => void deps.detaching.delete(uid),
  };
};

async function reconcile(deps: Own, ctx: MachineContext): Promise<StepResult> {
  const { nodes, signal } = ctx;
  if (!isAt(ctx, 'detach-volumes')) return next;
  const attached = nodes === undefined || deps.cursor.isNodeAbandoned(ctx) ? [] : attachmentsOf(ctx, nodes);
  if (nodes === undefined || attached.length === 0) return done(deps, ctx);
  const unrecorded = untilRecorded(ctx, 'detach-volumes');
  if (unrecorded !== undefined) return unrecorded;
  if (!(await deps.cursor.isStillOurs(ctx, signal))) return waitFor('the latest version of the Machine');

  const failure = await detach(attached, nodes, signal);
  if (failure !== undefined) return failed(deps, ctx, failure);
  // What we deleted is seen at once; what others have attached meanwhile goes in the next round.
  return attachmentsOf(ctx, nodes).length === 0
    ? done(deps, ctx)
    : requeue(RETRY_MS, 'VolumeAttachments to be deleted');
}

function attachmentsOf({ machine }: MachineContext, nodes: NodeAccess): readonly VolumeAttachment[] {
  return nodes.ofMachine(machine).flatMap(({ metadata }) => nodes.attachments(metadata.name));
}

function done(deps: Own, ctx: MachineContext): StepResult {
  const { machine } = ctx;
  deps.detaching.delete(machine.metadata.uid);
  deps.cursor.advance(ctx, 'delete-vm', textOfStage(machine.status.lastOperation?.description ?? ''));
  return next;
}

/** Resolves with what the first of those that failed has failed with. */
async function detach(
  attached: readonly VolumeAttachment[],
  nodes: NodeAccess,
  signal: AbortSignal,
): Promise<{ readonly name: string; readonly error: unknown } | undefined> {
  const results = await Promise.allSettled(attached.map((attachment) => nodes.detach(attachment, signal)));
  const at = results.findIndex(({ status }) => status === 'rejected');
  const result = results[at];
  if (result?.status !== 'rejected') return undefined;
  return { name: attached[at]?.metadata.name ?? '', error: result.reason };
}

function failed(deps: Own, ctx: MachineContext, { name, error }: { name: string; error: unknown }): StepResult {
  const { machine, pass, log } = ctx;
  if (error instanceof GateClosedError) throw error;
  const { uid } = machine.metadata;
  const nowMs = deps.clock.monotonicMs();
  const sinceMs = deps.detaching.get(uid) ?? nowMs;
  deps.detaching.set(uid, sinceMs);
  const reason = error instanceof Error ? error.message : String(error);
  const text = `Could not delete VolumeAttachment ${name} of Node ${nodeNameOf(machine)}: ${reason}.`;
  log.warn({ err: error, attachment: name }, 'could not delete a VolumeAttachment');
  if (nowMs - sinceMs < deps.settings.pvDetachTimeoutMs) {
    if (deps.cursor.stay(ctx, 'detach-volumes', text)) pass.event('DetachFailed', text);
    return requeue(RETRY_MS, 'VolumeAttachments to be deleted');
  }
  pass.event('DetachFailed', `Abandoned: ${text}`);
  deps.detaching.delete(uid);
  deps.cursor.advance(ctx, 'delete-vm', text);
  return next;
}
