import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { fromTimestamp } from '../../../clock/clock.ts';
import { describeFieldErrors, validateMachineClass } from '../../../apis/machine/v1alpha1/validation.ts';
import { next, waitFor, type StepResult } from '../../../reconcile/result.ts';
import { isUnresolved, resolveClass } from '../class-resolution.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import { setFailure } from '../status.ts';
import { USER_DATA } from './bootstrap.ts';

/** A class that stays without finalizer for longer is a problem to be told. */
const PROTECTION_MS = 30_000;

/**
 * Finds class, driver and Secret data. Whatever is wrong with them is told in the status and by an Event, and the machine waits
 * for the object to be corrected; its creation timeout runs on. A class is only used once its finalizer protects it, because
 * without its class a VM could not be deleted.
 */
export const resolve: MachineStep = {
  name: 'resolve',

  async run(ctx) {
    const resolved = await resolveClass(ctx, ctx.machine);
    const problem = isUnresolved(resolved) ? resolved.problem : problemOf(resolved);
    if (isUnresolved(resolved) || problem !== undefined) {
      tell(ctx, problem ?? '');
      return waitFor('the MachineClass or its Secret to be corrected');
    }
    if (resolved.machineClass.metadata.finalizers?.includes(MACHINE_FINALIZER) !== true) return unprotected(ctx);
    ctx.resolved = resolved;
    return next;
  },
};

function problemOf({ machineClass, secretData }: ResolvedClass): string | undefined {
  const { name, namespace = '' } = machineClass.metadata;
  const errors = validateMachineClass(machineClass);
  if (errors.length > 0) return `MachineClass ${namespace}/${name} is invalid: ${describeFieldErrors(errors)}.`;
  if (secretData[USER_DATA] !== undefined) return undefined;
  const { secretRef } = machineClass;
  return secretRef === undefined
    ? `MachineClass ${namespace}/${name} names no Secret: set secretRef to one with key ${USER_DATA}.`
    : `Secret ${secretRef.namespace ?? namespace}/${secretRef.name ?? ''} of MachineClass ${namespace}/${name} has no key ${USER_DATA}: create it.`;
}

/** The class controller adds the finalizer within moments, if it runs. */
function unprotected(ctx: MachineContext): StepResult {
  const { machine, clock, pass } = ctx;
  const leftMs = (fromTimestamp(machine.metadata.creationTimestamp) ?? 0) + PROTECTION_MS - clock.now();
  if (leftMs > 0) pass.alsoAfter(leftMs, 'the finalizer of the MachineClass');
  else {
    const name = machine.spec.class?.name ?? '';
    tell(ctx, `MachineClass ${name} has no finalizer ${MACHINE_FINALIZER}: let the machine-class controller run.`);
  }
  return waitFor('the finalizer of the MachineClass');
}

function tell({ machine, observed, clock, pass, log }: MachineContext, problem: string): void {
  setFailure(machine, { type: 'Create', state: 'Failed', description: problem }, clock.now());
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event('InvalidClass', problem);
  pass.afterWrite(() => log.info({ problem }, 'machine waits for its class'));
}
