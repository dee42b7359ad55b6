import { hasFinalizer } from '../../../apis/finalizers.ts';
import { MACHINE_FINALIZER } from '../../../apis/machine/v1alpha1/labels.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { describeFieldErrors, validateMachineClass } from '../../../apis/machine/v1alpha1/validation.ts';
import { next, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { ApiError } from '../../../kube/client/errors.ts';
import { failureOfCreation } from '../../machine-facts/joining.ts';
import type { OperationCode } from '../../machine-facts/operation-codes.ts';
import type { Collaborators } from '../collaborators.ts';
import { noVMWasRequested } from '../calls/no-vm-requested.ts';
import { beginPhase, setFailure, wasNeverRequested } from '../../machine-facts/status.ts';
import { NO_VM_REQUESTED, PREPARATION_FAILED } from '../../machine-facts/status-texts.ts';
import { isUnresolved, wrongKindOf, type Unresolved } from '../calls/class-resolution.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import { beginToAsk, wasMadeMeanwhile } from './beginning.ts';
import { USER_DATA } from '../tokens/machine-tokens.ts';

/** A class that stays without finalizer for longer is a problem to be told. */
const PROTECTION_MS = 30_000;

type Deps = Pick<Collaborators, 'clock' | 'activities' | 'resolveClass' | 'trust' | 'vmClasses'>;

/**
 * Finds class, driver and Secret data. Whatever is wrong with them is told in the status and by an Event, and the machine waits
 * for the object to be corrected; its creation timeout runs on. A class is only used once its finalizer protects it, because
 * without its class a VM could not be deleted.
 */
export const resolve = (deps: Deps): MachineStep => ({
  name: 'resolve',

  async run(ctx) {
    const wrongKind = wrongKindOf(ctx.machine);
    if (wrongKind !== undefined && noVMWasRequested(deps.activities, ctx.observed)) {
      // Nothing would keep such a class from being deleted while its VM exists.
      report(deps, ctx, `${NO_VM_REQUESTED}${wrongKind}`, 'NeverAsked');
      return waitFor('a supported kind in spec.class.kind');
    }
    const resolved = await resolveOrReport(deps, ctx);
    const problem = isUnresolved(resolved) ? resolved.problem : problemOf(resolved);
    if (isUnresolved(resolved) || problem !== undefined) {
      const isForSure =
        isUnresolved(resolved) && mayBeSure(deps, ctx, resolved) && noVMWasRequested(deps.activities, ctx.observed);
      if (isForSure) report(deps, ctx, `${NO_VM_REQUESTED}${problem ?? ''}`, 'NeverAsked');
      else report(deps, ctx, problem ?? '');
      return waitFor('the MachineClass or its Secret to be corrected');
    }
    if (!hasFinalizer(resolved.machineClass, MACHINE_FINALIZER)) {
      return unprotected(deps, ctx, resolved);
    }
    if (wasNeverRequested(ctx.observed)) return beginToAsk(deps, ctx.machine);
    ctx.resolved = resolved;
    return next;
  },
});

/**
 * A class that was used is still there. A driver that was is not, when the process is started without it: only of a Machine that was
 * made while this process decides is it certain that no other one has asked that driver.
 */
function mayBeSure(deps: Deps, { observed }: MachineContext, { missing }: Unresolved): boolean {
  return missing === 'class' || wasNeverRequested(observed) || wasMadeMeanwhile(deps, observed);
}

/** A Secret that may not be read is told of; the pass fails, and is repeated. */
async function resolveOrReport(deps: Deps, ctx: MachineContext): Promise<ResolvedClass | Unresolved> {
  try {
    return await deps.resolveClass(ctx.machine, ctx.signal);
  } catch (err) {
    if (err instanceof ApiError) show(deps, ctx, `${PREPARATION_FAILED}${err.message}`, 'PreparationFailed');
    throw err;
  }
}

function problemOf({ machineClass, secretData, missingSecrets }: ResolvedClass): string | undefined {
  const { name, namespace = '' } = machineClass.metadata;
  const errors = validateMachineClass(machineClass);
  if (errors.length > 0) return `MachineClass ${namespace}/${name} is invalid: ${describeFieldErrors(errors)}.`;
  if (secretData[USER_DATA] !== undefined) return undefined;
  const { secretRef } = machineClass;
  if (secretRef === undefined) {
    return `MachineClass ${namespace}/${name} does not refer to a Secret: set secretRef to a Secret with key ${USER_DATA}.`;
  }
  const secretNamespace = secretRef.namespace || namespace;
  const key = `${secretNamespace}/${secretRef.name ?? ''}`;
  const told = `Secret ${key} of MachineClass ${namespace}/${name}`;
  if (secretNamespace !== namespace)
    return `${told} is in another namespace, which is not allowed: move it to ${namespace}.`;
  if (missingSecrets.includes(key)) return `${told} does not exist: create it with key ${USER_DATA}.`;
  return `${told} does not have key ${USER_DATA}: add it.`;
}

/** The class controller adds the finalizer within moments, if it runs. */
function unprotected(deps: Deps, ctx: MachineContext, { machineClass }: ResolvedClass): StepResult {
  const { machine, pass } = ctx;
  // The class of a VM that is being requested gets it also when the Machine has come to name another one.
  deps.vmClasses.record(machine);
  const leftMs = (fromTimestamp(machine.metadata.creationTimestamp) ?? 0) + PROTECTION_MS - deps.clock.now();
  if (leftMs > 0) pass.alsoAfter(leftMs, 'the finalizer of the MachineClass');
  else {
    report(
      deps,
      ctx,
      `MachineClass ${machineClass.metadata.name} is missing finalizer ${MACHINE_FINALIZER}; check that the machine-class controller is running.`,
    );
  }
  return waitFor('the finalizer of the MachineClass');
}

function report(deps: Deps, ctx: MachineContext, problem: string, errorCode?: OperationCode): void {
  const { machine, observed, pass, log } = ctx;
  show(deps, ctx, problem, errorCode);
  if (machine.status.lastOperation?.description === observed.status?.lastOperation?.description) return;
  pass.event('InvalidClass', problem);
  pass.afterWrite(() => log.warn({ problem }, 'waiting for class'));
}

function show(
  { clock }: Deps,
  { machine, observed }: MachineContext,
  description: string,
  errorCode?: OperationCode,
): void {
  beginPhase(machine, 'CrashLoopBackOff', clock.now());
  const told = { type: 'Create', state: 'Failed', description } as const;
  const failure = errorCode === undefined ? told : { ...told, errorCode };
  setFailure(machine, failureOfCreation(observed, failure), clock.now());
}
