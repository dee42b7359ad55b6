import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { VirtualMachine } from '../../../driver/driver.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';
import { next, requeue, waitFor, type StepResult } from '../../../reconcile/result.ts';
import { isUnresolved, resolveClass } from '../class-resolution.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import type { CallInput } from '../retries.ts';
import { inputOf } from '../steps/launch.ts';
import { advance, isAt, isNodeAbandoned, stay } from './cursor.ts';
import { takenBy } from '../steps/claim.ts';

/** Answers that say as much as can be known: the drain finds out whether there is a Node, the driver deletes what is left. */
const ENOUGH: ReadonlySet<DriverCode> = new Set(['NotFound', 'Unimplemented', 'Uninitialized']);

/**
 * Finds out the Node's name: from label `node`, from Nodes that show the machine's name or provider id, and only then from
 * the provider. Without its class a machine goes on with what is known.
 */
export const findNode: MachineStep = {
  name: 'find-node',

  async run(ctx) {
    const { machine, nodes } = ctx;
    if (!isAt(ctx, 'vm-status')) return next;
    if (nodes === undefined || isNodeAbandoned(ctx)) {
      advance(ctx, 'delete-vm', nodes === undefined ? 'There is no target cluster, so nothing is drained.' : '');
      return next;
    }
    const known = machine.metadata.labels?.[NODE_LABEL] ?? '';
    const node = known === '' ? nodes.ofMachine(machine)[0] : undefined;
    if (node !== undefined) name(ctx, node.metadata.name);
    if (known !== '' || node !== undefined) {
      advance(ctx, 'drain');
      return next;
    }
    const resolved = await resolveClass(ctx, machine);
    if (!isUnresolved(resolved)) return ask(ctx, resolved);
    advance(ctx, 'drain');
    return next;
  },
};

function name({ machine }: MachineContext, nodeName: string): void {
  machine.metadata.labels = { ...machine.metadata.labels, [NODE_LABEL]: nodeName };
}

function ask(ctx: MachineContext, resolved: ResolvedClass): StepResult {
  const { machine, activities } = ctx;
  const { uid } = machine.metadata;
  const activity = activities.get<VirtualMachine>(uid, 'status');
  if (activity === undefined) return start(ctx, resolved);
  switch (activity.state) {
    case 'running':
      return waitFor('the provider to tell of the VM');
    case 'failed':
      activities.forget(uid, 'status');
      return failed(ctx, resolved, activity.error);
    default:
      found(ctx, activity.result);
      return next;
  }
}

function start(ctx: MachineContext, resolved: ResolvedClass): StepResult {
  const { observed, key, activities, retries } = ctx;
  const input = inputOf(ctx, resolved, 'status-of-deleted');
  const waitMs = retries.waitMs(input);
  if (waitMs > 0) {
    showAgain(ctx, input);
    return requeue(waitMs, 'the provider to tell of the VM');
  }
  const { driver, machineClass, secretData } = resolved;
  const owner = { uid: observed.metadata.uid, key, provider: driver.provider };
  activities.startOrGet(owner, 'status', (signal) =>
    driver.getStatus({ machine: observed, machineClass, secretData }, signal),
  );
  return waitFor('the provider to tell of the VM');
}

function found(ctx: MachineContext, told: Partial<VirtualMachine>): void {
  const { machine, activities, pass } = ctx;
  // What another machine has is not taken over.
  const isRefused = takenBy(ctx, { providerID: '', nodeName: '', ...told }) !== undefined;
  const { nodeName, providerID } = isRefused ? {} : told;
  if (nodeName !== undefined && nodeName !== '') name(ctx, nodeName);
  if ((machine.spec.providerID ?? '') === '' && providerID !== undefined && providerID !== '') {
    machine.spec.providerID = providerID;
  }
  pass.afterWrite(() => activities.forget(machine.metadata.uid, 'status'));
  advance(ctx, 'drain');
}

function failed(ctx: MachineContext, resolved: ResolvedClass, error: unknown): StepResult {
  const { retries } = ctx;
  if (!(error instanceof DriverError)) throw error;
  if (ENOUGH.has(error.code)) {
    found(ctx, error.result ?? {});
    return next;
  }
  const input = inputOf(ctx, resolved, 'status-of-deleted');
  retries.failed(input, error);
  showAgain(ctx, input);
  return requeue(retries.waitMs(input), 'the provider to tell of the VM');
}

/** Shows a failure in every pass while the next attempt is waited for; much the same again is no write. */
function showAgain(ctx: MachineContext, input: CallInput): void {
  const failure = ctx.retries.failureOf(input);
  if (failure !== undefined) stay(ctx, 'vm-status', `Cloud provider message - ${failure.error.message}.`);
}
