import { withoutFinalizer, hasFinalizer } from '../../../apis/finalizers.ts';
import { nodeNameOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { FORCED_DELETION_SINCE_ANNOTATION, MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { formatDuration } from '../../../apis/duration.ts';
import { fromTimestamp, toTimestamp } from '../../../base/clock/clock.ts';
import { waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { policyInForce } from '../../machine-facts/deletion-policy.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, ResolvedClass } from '../context.ts';

/**
 * What becomes of VMs that no Machine has: this process deletes them, only reports them (`--machine-safety-orphan-vms-dry-run`), or does not look
 * for any (without controller `safety.orphan-vms`).
 */
export type LeftVMs = 'deleted' | 'reported' | 'not-looked-for';

export type ForcedRemovalDeps = Pick<
  Collaborators,
  'leftVMs' | 'clock' | 'settings' | 'calls' | 'reportedOnce' | 'noteForcedRemoval'
>;

/**
 * Lets a Machine with policy `forced` go when its VM could not be deleted for the timeout; `waiting` is what ends the pass otherwise. Nothing
 * is forgotten: the class notes it first, and is kept until a list shows that the VM is gone; the orphan loop deletes VM and Node as
 * soon as the provider answers, and where it does not, that is told. Where nobody could ever find the VM, the Machine stays.
 *
 * | deletion of the VM                                    | what follows                         |
 * |-------------------------------------------------------|--------------------------------------|
 * | not failing for the timeout yet                       | waits                                |
 * | not tried by this process yet                         | waits for its first attempt          |
 * | the driver says that it cannot list VMs               | waits, and says why                  |
 * | the class does not carry our finalizer                | waits, and says why                  |
 * | otherwise                                             | the class notes it; the Machine goes |
 */
export async function orForcedRemoval(
  deps: ForcedRemovalDeps,
  ctx: MachineContext,
  resolved: ResolvedClass,
  waiting: StepResult,
  wasTried = deps.calls.hasFailed(ctx, resolved, 'delete'),
): Promise<StepResult> {
  const { machine, pass } = ctx;
  if (policyInForce(machine) !== 'forced') return waiting;
  const timeoutMs = deps.settings.forcedDeletionTimeoutMs;
  const leftMs = sinceMsOf(deps, ctx) + timeoutMs - deps.clock.now();
  if (leftMs > 0) {
    pass.alsoAfter(leftMs, 'the timeout of a forced deletion');
    return waiting;
  }
  if (!wasTried) return waiting;
  const obstacle = await obstacleTo(resolved, ctx.signal);
  if (obstacle !== undefined) {
    reportHeld(deps, ctx, obstacle);
    return waiting;
  }
  await note(deps, ctx, resolved);
  release(deps, ctx, resolved);
  return waitFor('the object to be removed');
}

/** Since when the VM is being deleted by this policy; recorded, so that a restart does not begin anew. */
function sinceMsOf({ clock }: ForcedRemovalDeps, { machine }: MachineContext): number {
  const recordedMs = fromTimestamp(machine.metadata.annotations?.[FORCED_DELETION_SINCE_ANNOTATION]);
  if (recordedMs !== undefined && recordedMs <= clock.now()) return recordedMs;
  const now = toTimestamp(clock.now());
  machine.metadata.annotations = { ...machine.metadata.annotations, [FORCED_DELETION_SINCE_ANNOTATION]: now };
  return clock.now();
}

async function obstacleTo({ driver, machineClass }: ResolvedClass, signal: AbortSignal): Promise<string | undefined> {
  const { name } = machineClass.metadata;
  if (!hasFinalizer(machineClass, MACHINE_FINALIZER))
    return `Not removing the Machine: MachineClass ${name} is being deleted and is needed to find the VM.`;
  // One that does not answer is taken for one that lists, as nearly all do.
  const methods = await driver.capabilities(signal).then(
    (known) => known.methods,
    () => undefined,
  );
  return methods?.has('ListMachines') === false
    ? `Not removing the Machine: the driver of ${driver.provider} cannot list VMs, so the VM could not be found again.`
    : undefined;
}

async function note(deps: ForcedRemovalDeps, ctx: MachineContext, { machineClass }: ResolvedClass): Promise<void> {
  try {
    await deps.noteForcedRemoval(machineClass, ctx.observed, ctx.signal);
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err);
    reportHeld(deps, ctx, `MachineClass ${machineClass.metadata.name} could not be annotated: ${reason}.`);
    throw err;
  }
}

/** Why the Machine stays all the same; once. What the provider says remains what the status tells. */
function reportHeld({ reportedOnce }: ForcedRemovalDeps, { machine, pass }: MachineContext, text: string): void {
  if (reportedOnce.isNew(machine.metadata.uid, text)) pass.event('ForcedRemovalHeld', text);
}

function release(
  { leftVMs, settings }: ForcedRemovalDeps,
  { machine, pass, log }: MachineContext,
  { machineClass }: ResolvedClass,
): void {
  const providerID = providerIDOf(machine);
  const { name } = machineClass.metadata;
  const vm = providerID === '' ? 'The VM of the machine (provider ID unknown)' : `VM ${providerID}`;
  machine.metadata.finalizers = withoutFinalizer(machine, MACHINE_FINALIZER);
  pass.event(
    'ForcedRemoval',
    `${vm} was not deleted within ${formatDuration(settings.forcedDeletionTimeoutMs)}; removing the Machine anyway. The VM may still exist. ` +
      `${whatFollows(nodeNameOf(machine), leftVMs)} MachineClass ${name} is kept until the VM is gone.`,
    'record',
  );
  pass.afterWrite(
    () => log.warn({ providerID, class: name, leftVMs }, 'removed machine without deleting its VM'),
    'record',
  );
}

/** What becomes of VM and Node. Where nobody deletes them that must not be found out by the bill. */
function whatFollows(node: string, leftVMs: LeftVMs): string {
  switch (leftVMs) {
    case 'deleted':
      return (
        `${node === '' ? 'It is deleted' : `It and Node ${node} are deleted`} after the provider responds again, ` +
        'together with all other resources of the machine.'
      );
    case 'reported':
      return `It is not deleted automatically, because --machine-safety-orphan-vms-dry-run is set: delete it${andNode(node)} manually.`;
    case 'not-looked-for':
      return `It is not deleted automatically, because controller safety.orphan-vms is not running in this process: delete it${andNode(node)} manually.`;
  }
}

function andNode(node: string): string {
  return node === '' ? '' : ` and Node ${node}`;
}
