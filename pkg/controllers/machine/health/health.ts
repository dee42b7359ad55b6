import { phaseOf, providerIDOf, vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { NODE_LABEL } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { hasToJoin, runsOnceHealthy } from '../../machine-facts/joining.ts';
import { failedCallOf } from '../../machine-facts/original-texts.ts';
import { badConditions, conditionsChanged, describeConditions } from '../../machine-facts/node-health.ts';
import { watchedConditionsOf } from '../../machine-facts/settings.ts';
import { beginPhase, setOperation } from '../../machine-facts/status.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { hasFailedUpdate } from '../in-place/outcome.ts';
import { namedNode } from '../node/named-node.ts';

/** Phases that others end; nor does a healthy Node heal a machine that failed because its update in place did. */
const LEFT_ALONE: ReadonlySet<string> = new Set(['InPlaceUpdating', 'InPlaceUpdateFailed', 'Terminating']);

const UNNAMED = `Label ${NODE_LABEL} of the Machine is missing, and no Node refers to the Machine: set it to the name of its Node.`;

type Deps = Pick<Collaborators, 'clock' | 'settings' | 'machines' | 'classes' | 'metrics' | 'tokens' | 'activities'>;

/**
 * Mirrors the Node's conditions and moves between Running and Unknown. Never ends the pass.
 *
 * | Node                                       | phase                                    | becomes |
 * |--------------------------------------------|------------------------------------------|---------|
 * | missing, was seen before                   | Running                                  | Unknown |
 * | not named any more, was seen before        | Running                                  | Unknown |
 * | unhealthy                                  | Running                                  | Unknown |
 * | healthy                                    | any but Running, in-place, Terminating   | Running |
 * | healthy, it or the VM is not set up yet    | any of a machine that has to join        | as it is|
 * | healthy, CreateMachine is being repeated   | CrashLoopBackOff                         | as it is|
 */
export const health = (deps: Deps): MachineStep => ({
  name: 'health',

  async run(ctx) {
    const { machine, nodes } = ctx;
    if (nodes === undefined || phaseOf(machine) === '') return next;

    const node = namedNode(ctx, deps.machines);
    if (typeof node === 'object') await examine(deps, ctx, node);
    else if ((machine.status.conditions ?? []).length > 0) {
      becomeUnknown(deps, ctx, node === 'missing' ? 'Node object went missing.' : UNNAMED);
    }
    return next;
  },
});

async function examine(deps: Deps, ctx: MachineContext, node: Node): Promise<void> {
  const { machine } = ctx;
  const conditions = node.status?.conditions ?? [];
  if (conditionsChanged(machine.status.conditions ?? [], conditions)) {
    machine.status.conditions = [...conditions];
  }
  const phase = phaseOf(machine);
  if (LEFT_ALONE.has(phase) || hasFailedUpdate(machine)) return;

  const bad = badConditions(conditions, watchedConditionsOf(machine, deps.settings));
  if (bad.length > 0) becomeUnknown(deps, ctx, `Node conditions: ${describeConditions(bad)}.`);
  else if (conditions.length > 0 && phase !== 'Running') {
    if (runsOnceHealthy(machine, node) && !isCreationGoingOn(deps, ctx)) await becomeRunning(deps, ctx, node);
  } else if (conditions.length === 0) becomeUnknown(deps, ctx, 'Node reports no conditions.');
}

/**
 * Whether a creation goes on by itself: it has been begun again after a failure, or will be, or has come further than its machine tells. There may
 * be a VM to be initialized then; without an answer of the driver, the Node says enough.
 */
function isCreationGoingOn({ activities }: Deps, { machine }: MachineContext): boolean {
  if (phaseOf(machine) !== 'CrashLoopBackOff') return false;
  const { uid } = machine.metadata;
  const creation = activities.get(uid, 'create');
  if (creation?.state === 'done' && creation.result?.needsInitialize === true) return true;
  return failedCallOf(machine.status.lastOperation) === 'create' && creation?.state !== 'failed';
}

/** Only a Running machine can: the others have not been well yet, or are past it. */
function becomeUnknown({ clock }: Deps, { machine, pass, log }: MachineContext, why: string): void {
  if (phaseOf(machine) !== 'Running') return;
  const description = `Machine ${machine.metadata.name} is unhealthy - changing MachineState to Unknown. ${why}`;
  beginPhase(machine, 'Unknown', clock.now());
  setOperation(machine, { type: 'HealthCheck', state: 'Processing', description }, clock.now());
  pass.event('Unhealthy', why);
  pass.afterWrite(() => log.info({ why }, 'machine became unhealthy'));
}

async function becomeRunning(deps: Deps, ctx: MachineContext, node: Node): Promise<void> {
  const { clock, metrics, classes, activities } = deps;
  const { machine, pass, log } = ctx;
  const { name, namespace = '', uid, creationTimestamp } = machine.metadata;
  const isFirstTime = hasToJoin(machine);
  beginPhase(machine, 'Running', clock.now());
  const description = `Machine ${name} successfully ${isFirstTime ? 'joined' : 're-joined'} the cluster`;
  const operation = { type: isFirstTime ? 'Create' : 'HealthCheck', state: 'Successful', description } as const;
  setOperation(machine, operation, clock.now());
  // What else was told of the VM is not waited for any more.
  if (providerIDOf(ctx.observed) !== '') {
    pass.afterWrite(() => {
      activities.forget(uid, 'create');
      activities.forget(uid, 'initialize');
    });
  }
  if (!isFirstTime) {
    pass.event('NodeRejoined', `Node ${node.metadata.name} is healthy again.`);
    return;
  }

  await deps.tokens.remove(ctx);
  const tookMs = clock.now() - (fromTimestamp(creationTimestamp) ?? clock.now());
  const machineClass = classes.get(`${namespace}/${vmClassNameOf(machine)}`);
  pass.event(
    'NodeJoined',
    `Node ${node.metadata.name} joined ${Math.round(tookMs / 1_000)} s after the machine was created.`,
  );
  pass.afterWrite(() => {
    metrics.joined(machine, machineClass, tookMs);
    log.info({ node: node.metadata.name, ms: tookMs }, 'machine joined');
  });
}
