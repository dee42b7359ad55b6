import { nodeNameOf, phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { MAINTENANCE_NODE_ANNOTATION, MAINTENANCE_SINCE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, toTimestamp } from '../../../clock/clock.ts';
import { next } from '../../../reconcile/result.ts';
import { problemWith } from '../../machines/annotation-rule.ts';
import { describeHooks, hooksOf } from '../../machines/hooks.ts';
import {
  isMaintenanceRequested,
  howMaintenanceEnds,
  ENDED,
  GIVEN_BACK,
  MAINTENANCE,
  MAINTENANCE_RULE,
  type MaintenanceReason,
  REQUESTED,
  WITHOUT_NODE,
} from '../../machines/maintenance.ts';
import type { NodeAccess } from '../../machines/node-access.ts';
import { isWorthReporting, reasonFor } from '../../machines/node-refusal.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { describeProgress, reasonOf } from '../../../drain/progress-text.ts';
import { nextReportInMs } from '../drain/report.ts';
import type { DrainState } from '../drain/session.ts';
import { namedNode, type NamedNode } from '../node/named-node.ts';
import { nodeConditionOf, setCondition } from '../../machines/node-condition.ts';
import { liftOwnCordon, withoutOwnCordon } from '../node/own-cordon.ts';
import { releasedScaleDownHold, scaleDownHold } from '../node/scale-down-hold.ts';
import { planMaintenance, type MaintenancePlan } from './plan.ts';

/** When to try again what the API server refused of a Node. */
const REFUSED_RETRY_MS = 30_000;
/** Phases that a timeout ends. */
const TIMED: ReadonlySet<string> = new Set([
  'Unknown',
  'InPlaceUpdating',
  'InPlaceUpdateSuccessful',
  'InPlaceUpdateFailed',
]);

type Deps = Pick<Collaborators, 'drains' | 'reportedOnce' | 'clock' | 'machines'>;

/** The Node of a machine that is asked for maintenance, or was. */
interface Maintained {
  readonly nodes: NodeAccess;
  readonly node: Node;
}

type Running = Extract<DrainState, { kind: 'running' }>;

/**
 * Takes machines into maintenance that are asked to be, by annotation on Machine or Node, and back: the Node is cordoned, if it is not,
 * and emptied, never by force for the time's sake; condition `Maintenance` of the Node tells how far that is, and the Machine's
 * conditions say the same. The plan says what follows when. Never ends the pass.
 */
export const maintenance = (deps: Deps): MachineStep => ({
  name: 'maintenance',

  async run(ctx) {
    const named = namedNode(ctx, deps.machines);
    if (typeof named === 'object' && isBeingDeleted(named)) return next;
    const { nodes } = ctx;
    const found = nodes !== undefined && typeof named === 'object' ? { nodes, node: named } : undefined;
    const plan = planOf(ctx, found?.node);
    if (plan !== 'empty') deps.drains.end(ctx, 'maintenance');
    await carryOut(deps, ctx, plan, found, wrongValue(ctx.machine, named));
    return next;
  },
});

function planOf({ machine, observed }: MachineContext, node: Node | undefined): MaintenancePlan {
  const { [MAINTENANCE_NODE_ANNOTATION]: emptied, [MAINTENANCE_SINCE_ANNOTATION]: since } =
    observed.metadata.annotations ?? {};
  const { lastUpdateTime } = observed.status?.currentStatus ?? {};
  return planMaintenance({
    isRequested: isMaintenanceRequested(machine, node),
    isRecorded: since !== undefined,
    emptied,
    nodeUID: node?.metadata.uid,
    shown: node === undefined ? undefined : nodeConditionOf(node, MAINTENANCE)?.reason,
    isClockRestarted: !TIMED.has(phaseOf(machine)) || lastUpdateTime === since,
  });
}

async function carryOut(
  deps: Deps,
  ctx: MachineContext,
  plan: MaintenancePlan,
  found: Maintained | undefined,
  wrong: string | undefined,
): Promise<void> {
  switch (plan) {
    case 'leave-alone':
      if (found !== undefined) await showWrongValue(deps, ctx, found, wrong);
      return;
    case 'begin':
      return begin(deps, ctx);
    case 'empty':
      if (found === undefined) noteEmpty(deps, ctx, WITHOUT_NODE);
      else await empty(deps, ctx, found);
      return;
    case 'keep':
      if (found !== undefined) await keep(deps, ctx, found);
      return;
    case 'withdraw':
      return withdraw(deps, ctx);
    case 'give-back':
      if (found !== undefined) await giveBack(deps, ctx, found);
      return;
    case 'restart-clock':
      return restartClock(deps, ctx);
    case 'end':
      return end(ctx);
  }
}

function begin({ clock }: Deps, { machine, pass, log }: MachineContext): void {
  annotate(machine, { [MAINTENANCE_SINCE_ANNOTATION]: toTimestamp(clock.now()) });
  pass.event('MaintenanceStarted', `${REQUESTED} ${howMaintenanceEnds(machine)}`, 'record');
  pass.afterWrite(() => log.info({}, 'started the maintenance of a machine'), 'record');
}

async function empty(deps: Deps, ctx: MachineContext, found: Maintained): Promise<void> {
  const { machine, pass } = ctx;
  const { nodes, node } = found;
  delete machine.metadata.annotations?.[MAINTENANCE_NODE_ANNOTATION];
  const hooks = hooksOf(machine, 'maintenance');
  if (hooks.length > 0) {
    deps.drains.end(ctx, 'maintenance');
    const text = describeHooks(hooks);
    if (deps.reportedOnce.isNew(machine.metadata.uid, `${text} ${sinceOf(machine)}`))
      pass.event('WaitingForHooks', text);
    return say(deps, ctx, found, 'WaitingForHooks', text);
  }
  if (deps.drains.isTaken(ctx, 'maintenance')) {
    return say(deps, ctx, found, 'Requested', `${REQUESTED} Waiting for another drain of the Node to end.`);
  }
  await holdOffAutoscaler(deps, ctx, found);
  const state = await deps.drains.advanceKept(ctx, {
    purpose: 'maintenance',
    nodes,
    node,
    barrier: 'marked-cordon',
    startMs: fromTimestamp(sinceOf(machine)) ?? deps.clock.now(),
    forceRule: 'broken-node',
  });
  switch (state.kind) {
    case 'running':
      return showProgress(deps, ctx, found, state);
    case 'failed':
      if (state.isNews) pass.event('DrainFailed', state.text);
      return say(deps, ctx, found, 'DrainFailed', state.text);
    case 'drained':
      return noteEmpty(deps, ctx, node.metadata.uid);
    case 'node-gone':
      deps.drains.end(ctx, 'maintenance');
  }
}

/** What is recorded here outlives the process: the drain may be forgotten. */
function noteEmpty(deps: Deps, ctx: MachineContext, what: string): void {
  const { machine, pass, log } = ctx;
  annotate(machine, { [MAINTENANCE_NODE_ANNOTATION]: what });
  const text =
    what === WITHOUT_NODE ? 'There is no Node to drain' : `Node ${nodeNameOf(machine)} is cordoned and drained`;
  pass.event('InMaintenance', `${text}: the machine is in maintenance. ${howMaintenanceEnds(machine)}`, 'record');
  pass.afterWrite(() => {
    deps.drains.end(ctx, 'maintenance');
    log.info({}, 'machine entered maintenance');
  }, 'record');
}

/** Tells which pods a running drain waits for and why, at a calm pace. One that failed has failed until the next one gets somewhere. */
async function showProgress(deps: Deps, ctx: MachineContext, found: Maintained, { record }: Running): Promise<void> {
  const shown = nodeConditionOf(found.node, MAINTENANCE);
  if (record?.progress === undefined) {
    if (shown?.reason === 'Draining' || shown?.reason === 'DrainFailed') return;
    return await say(
      deps,
      ctx,
      found,
      'Draining',
      `Node ${found.node.metadata.name} is cordoned, and its pods are being evicted.`,
    );
  }
  const { progress } = record;
  const nowMs = deps.clock.monotonicMs();
  const waitMs = nextReportInMs(record, nowMs);
  if (waitMs > 0) return ctx.pass.alsoAfter(waitMs, 'the pods to leave');
  await say(deps, ctx, found, 'Draining', describeProgress(progress));
  record.reportedReason = reasonOf(progress);
  record.reportedMs = nowMs;
}

async function keep(deps: Deps, ctx: MachineContext, found: Maintained): Promise<void> {
  const { nodes, node } = found;
  await holdOffAutoscaler(deps, ctx, found);
  const isCordoned = node.spec?.unschedulable === true;
  // A cordon that somebody has lifted is theirs to set again.
  if (!isCordoned) await attempt(deps, ctx, () => liftOwnCordon(ctx, nodes, node));
  const text = isCordoned
    ? `Node ${node.metadata.name} is cordoned and drained.`
    : `Node ${node.metadata.name} was drained, but has been uncordoned since.`;
  await say(deps, ctx, found, 'InMaintenance', `${text} ${howMaintenanceEnds(ctx.machine)}`);
}

/**
 * Makes the Node as it was before, as it is at this moment. That is told last: it also makes fail what a drain that was broken off has
 * sent and nobody has answered yet.
 */
async function giveBack(deps: Deps, ctx: MachineContext, found: Maintained): Promise<void> {
  const { machine, pass, signal } = ctx;
  const { nodes, node } = found;
  if (deps.drains.isRunning(ctx, 'maintenance')) return pass.alsoAfter(0, 'the drain to end');
  const refusal = await attempt(deps, ctx, async () => {
    const live = await nodes.read(node.metadata.name, signal);
    if (live?.metadata.uid !== node.metadata.uid) return;
    const isPreserved = (machine.status.currentStatus?.preserveExpiryTime ?? '') !== '';
    const held = isPreserved ? undefined : releasedScaleDownHold(live);
    const cordon = withoutOwnCordon(live);
    if (held === undefined && cordon === undefined) return;
    const annotations = { ...held, ...cordon?.metadata?.annotations };
    const metadata = { annotations, resourceVersion: live.metadata.resourceVersion };
    await nodes.patch(live, { ...cordon, metadata }, signal);
  });
  if (refusal === undefined) return await say(deps, ctx, found, 'NotInMaintenance', ENDED);
  await say(
    deps,
    ctx,
    found,
    'UncordonFailed',
    `The API server refuses to uncordon Node ${node.metadata.name}: ${refusal}`,
  );
}

/** From here on the Node is not taken for one that was emptied, should maintenance be asked for again. */
function withdraw({ clock }: Deps, { machine }: MachineContext): void {
  const since = toTimestamp(clock.now());
  annotate(machine, { [MAINTENANCE_SINCE_ANNOTATION]: since, [MAINTENANCE_NODE_ANNOTATION]: GIVEN_BACK });
}

/** Whatever the machine did meanwhile, it has its whole timeout again from now on. */
function restartClock({ clock }: Deps, { machine }: MachineContext): void {
  const now = toTimestamp(clock.now());
  annotate(machine, { [MAINTENANCE_SINCE_ANNOTATION]: now });
  machine.status.currentStatus = { ...machine.status.currentStatus, lastUpdateTime: now };
}

function end({ machine, pass, log }: MachineContext): void {
  const { annotations = {} } = machine.metadata;
  delete annotations[MAINTENANCE_SINCE_ANNOTATION];
  delete annotations[MAINTENANCE_NODE_ANNOTATION];
  pass.event('MaintenanceEnded', 'The machine is no longer in maintenance.', 'record');
  pass.afterWrite(() => log.info({}, 'ended the maintenance of a machine'), 'record');
}

async function holdOffAutoscaler(deps: Deps, ctx: MachineContext, { nodes, node }: Maintained): Promise<void> {
  const annotations = scaleDownHold(node);
  if (annotations !== undefined)
    await attempt(deps, ctx, () => nodes.patch(node, { metadata: { annotations } }, ctx.signal));
}

async function say(
  deps: Deps,
  ctx: MachineContext,
  { nodes, node }: Maintained,
  reason: MaintenanceReason,
  message: string,
): Promise<void> {
  const status = reason === 'InMaintenance' ? 'True' : 'False';
  const condition = { type: MAINTENANCE, status, reason, message } as const;
  await attempt(deps, ctx, async () => void (await setCondition(deps, ctx, nodes, node, condition)));
}

/** Does something to the Node. What the API server refuses is told, holds up nothing else, and is tried again; resolves with its words. */
async function attempt(
  { reportedOnce }: Deps,
  ctx: MachineContext,
  write: () => Promise<void>,
): Promise<string | undefined> {
  const { machine, pass, log } = ctx;
  try {
    await write();
    return undefined;
  } catch (err) {
    if (!isWorthReporting(err)) throw err;
    const why = reasonFor(err, nodeNameOf(machine));
    pass.alsoAfter(REFUSED_RETRY_MS, 'the API server to accept a change of the Node');
    if (reportedOnce.isNew(machine.metadata.uid, `MaintenanceRefused ${why} ${sinceOf(machine)}`)) {
      pass.event('MaintenanceRefused', `The API server refuses a change of Node ${nodeNameOf(machine)}: ${why}`);
      log.warn({ err }, 'could not change a node for maintenance');
    }
    return why;
  }
}

/** What is wrong with the request: with that of the Machine, else with that of its Node. */
function wrongValue(machine: Machine, node: NamedNode): string | undefined {
  const ofMachine = problemWith(MAINTENANCE_RULE, machine, 'the Machine');
  if (ofMachine !== undefined || typeof node !== 'object') return ofMachine;
  return problemWith(MAINTENANCE_RULE, node, `Node ${node.metadata.name}`);
}

/** A request that means nothing stands on the Node, until it is corrected. */
async function showWrongValue(
  deps: Deps,
  ctx: MachineContext,
  found: Maintained,
  wrong: string | undefined,
): Promise<void> {
  if (wrong !== undefined) return await say(deps, ctx, found, 'InvalidValue', wrong);
  if (nodeConditionOf(found.node, MAINTENANCE)?.reason === 'InvalidValue')
    await say(deps, ctx, found, 'NotInMaintenance', ENDED);
}

function annotate(machine: Pick<Machine, 'metadata'>, annotations: Record<string, string>): void {
  machine.metadata.annotations = { ...machine.metadata.annotations, ...annotations };
}

function sinceOf({ metadata }: Pick<Machine, 'metadata'>): string {
  return metadata.annotations?.[MAINTENANCE_SINCE_ANNOTATION] ?? '';
}
