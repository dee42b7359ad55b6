import { hasForceDeletionLabel, nodeNameOf, providerIDOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import { DriverError, type DriverCode } from '../../../driver/error.ts';
import { next, waitFor, type StepResult } from '../../../work/reconcile/result.ts';
import { wasNeverRequested, type MachineCopy } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import { isUnresolved } from '../calls/class-resolution.ts';
import type { MachineContext, MachineStep, ResolvedClass } from '../context.ts';
import type { ActivityResults } from '../calls/results.ts';
import type { MachineCall } from '../calls/driver-call.ts';
import { isAt } from './cursor.ts';
import { failureText } from './delete-vm.ts';
import { begunNamesakes } from './namesake-vms.ts';
import { readClass } from './read-class.ts';
import { isOlder, mayBeForeign, nodeAgainst, unseenVMError } from './unseen-vm.ts';

/**
 * Answers besides NotFound that say as much as can be known, and speak for what is recorded: the drain finds out whether there is a Node, the driver
 * deletes what is left. OutOfRange: several VMs.
 */
const VOUCHING: ReadonlySet<DriverCode> = new Set(['Unimplemented', 'Uninitialized', 'OutOfRange']);

type Deps = Pick<
  Collaborators,
  | 'clock'
  | 'machines'
  | 'namesakes'
  | 'activities'
  | 'brokenNodes'
  | 'calls'
  | 'claims'
  | 'cursor'
  | 'reportedOnce'
  | 'resolveClass'
>;

/**
 * Finds out the Node's name: from label `node`, from Nodes that show the machine's name or provider id, and only then from
 * the provider. Without its class a machine goes on with what is known; one with a VM of which no Node is known waits for it. Of a Node that is
 * older than the Machine, its record proves nothing: it may be a copy of another namespace's. The provider is asked, for which the class is waited
 * for, and the Node is left alone if it has no VM; while the Node is Ready and shows the VM that is recorded, that is not believed, and the deletion
 * stays here. A deletion that is forced waits for no answer after the first.
 */
export const findNode = (deps: Deps): MachineStep => ({
  name: 'find-node',

  async run(ctx) {
    const { machine, nodes } = ctx;
    if (!isAt(ctx, 'vm-status')) return next;
    if (nodes === undefined || deps.cursor.isNodeAbandoned(ctx)) {
      deps.cursor.advance(
        ctx,
        'delete-vm',
        nodes === undefined ? 'There is no target cluster, so there is nothing to drain.' : '',
      );
      return next;
    }
    // A driver may take the VM of a namesake for it.
    if (deps.namesakes !== undefined && wasNeverRequested(machine)) {
      deps.cursor.advance(ctx, 'delete-vm');
      return next;
    }
    const known = nodeNameOf(machine);
    const node = known === '' ? nodes.ofMachine(machine)[0] : undefined;
    if (node !== undefined) name(ctx, node.metadata.name);
    const mayBeCopied = isOlder(nodes.get(nodeNameOf(machine)), machine.metadata);
    if (!mayBeCopied && (known !== '' || node !== undefined)) {
      deps.cursor.advance(ctx, 'drain');
      return next;
    }
    const resolved = await readClass(deps, ctx, 'vm-status');
    if (!isUnresolved(resolved)) return await ask(deps, ctx, resolved);
    // Only the driver tells whose VM it is, and what its Node is: without an answer, a Node that may be its own would stay, and the VM go undrained with
    // the class's return.
    if (providerIDOf(machine) !== '' && !hasForceDeletionLabel(machine)) {
      const text = `${resolved.problem} Without it, the VM cannot be deleted.`;
      if (deps.cursor.stay(ctx, 'vm-status', text)) ctx.pass.event('InvalidClass', text);
      return waitFor('the MachineClass to be corrected');
    }
    if (mayBeCopied) forgetNode(machine);
    deps.cursor.advance(ctx, 'drain');
    return next;
  },
});

/** With what its status mirrors of that Node: nothing may say any more that it is this machine's. */
function forgetNode({ metadata, status }: MachineCopy): void {
  const { [NODE_LABEL]: _node, ...labels } = metadata.labels ?? {};
  metadata.labels = labels;
  status.conditions = [];
}

function name({ machine }: MachineContext, nodeName: string): void {
  machine.metadata.labels = { ...machine.metadata.labels, [NODE_LABEL]: nodeName };
}

async function ask(deps: Deps, ctx: MachineContext, resolved: ResolvedClass): Promise<StepResult> {
  const { observed } = ctx;
  const { driver, machineClass, secretData } = resolved;
  const what = 'the provider to return the VM';
  const call: MachineCall<'status'> = {
    kind: 'status',
    resolved,
    waitingFor: { answer: what, attempt: what },
    send: async (signal) => {
      await driver.turn(machineClass, signal);
      const mayBeAnothers = (await begunNamesakes(deps, observed, signal)).length > 0;
      const told = driver.getStatus({ machine: observed, machineClass, secretData }, signal);
      return mayBeAnothers ? { isMissing: await isNotFound(told), mayBeAnothers } : await told;
    },
    answerIn: (error) => answerIn(error, hasForceDeletionLabel(ctx.machine)),
    // Much the same again is no write and no Event.
    show({ error }) {
      const text = failureText(error);
      if (deps.cursor.stay(ctx, 'vm-status', text)) ctx.pass.event('VMDeletionFailed', text);
    },
  };
  const progress = deps.calls.advance(ctx, call);
  if (progress.kind === 'waiting') return progress.result;
  const node = await contradictionTo(deps, ctx, progress.answer);
  if (node !== undefined) {
    const error = unseenVMError(ctx.observed, node, machineClass.metadata.name, undefined);
    return deps.calls.refuse(
      ctx,
      call,
      error,
      `the driver to find the VM, or Node ${node.metadata.name} not to be Ready for 5 minutes`,
    );
  }
  found(deps, ctx, progress.answer);
  return next;
}

/**
 * The Ready Node of the recorded VM, which the driver does not find: its tags may be those of the Machine before a restore. Nothing is drained,
 * because this one may be a copy of another manager's Machine, whose VM and Node they are; nor is the VM given up. Throws ApiError.
 */
async function contradictionTo(
  deps: Deps,
  ctx: MachineContext,
  { isMissing }: ActivityResults['status'],
): Promise<Node | undefined> {
  if (isMissing !== true || providerIDOf(ctx.observed) === '') return undefined;
  return await nodeAgainst(deps, ctx, 'vm-status', { lastKnownState: undefined, wasFound: false });
}

/** What an error says as well as an answer would; undefined: nothing, and it is asked again, unless `isLast`: then what is recorded stands. */
function answerIn({ code, result }: DriverError, isLast: boolean): ActivityResults['status'] | undefined {
  if (code === 'NotFound') return { isMissing: true };
  if (VOUCHING.has(code)) return { ...result };
  return isLast ? {} : undefined;
}

/** Whether the driver says that there is no VM; one that knows names only may find that of a namesake too. Throws what else it does not know. */
async function isNotFound(told: Promise<unknown>): Promise<boolean> {
  try {
    await told;
    return false;
  } catch (err) {
    if (DriverError.hasCode(err, 'NotFound', ...VOUCHING)) return err.code === 'NotFound';
    throw err;
  }
}

function found(deps: Deps, ctx: MachineContext, told: ActivityResults['status']): void {
  const { machine, nodes, pass } = ctx;
  // What another machine has is not taken over.
  const isRefused =
    told.mayBeAnothers === true || deps.claims.takenBy(ctx, { providerID: '', nodeName: '', ...told }) !== undefined;
  const { nodeName, providerID } = isRefused ? {} : told;
  if (told.isMissing === true && isOlder(nodes?.get(nodeNameOf(machine)), machine.metadata)) forgetNode(machine);
  if (nodeName !== undefined && nodeName !== '' && !mayBeForeign(nodes?.get(nodeName), machine)) name(ctx, nodeName);
  if (providerIDOf(machine) === '' && providerID !== undefined && providerID !== '') {
    machine.spec.providerID = providerID;
  }
  pass.afterWrite(() => deps.activities.forget(machine.metadata.uid, 'status'));
  deps.cursor.advance(ctx, 'drain');
}
