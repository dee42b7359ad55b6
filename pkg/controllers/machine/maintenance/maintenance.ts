import { nodeNameOf, phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import {
  MAINTENANCE_NODE_ANNOTATION as EMPTIED,
  MAINTENANCE_SINCE_ANNOTATION as SINCE,
} from '../../../apis/machine/v1alpha1/labels.ts';
import { toTimestamp } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { problemWith } from '../../machine-facts/annotation-rule.ts';
import { hooksOf } from '../../machine-facts/hooks.ts';
import {
  isMaintenanceRequested,
  howMaintenanceEnds,
  ENDED,
  GIVEN_BACK,
  MAINTENANCE,
  MAINTENANCE_RULE,
  REQUESTED,
  WITHOUT_NODE,
} from '../../machine-facts/maintenance.ts';
import { nodeConditionOf } from '../../machine-facts/node-condition.ts';
import { isEmptyForUpdate } from '../../machine-facts/rollout-marks.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineStep } from '../context.ts';
import { namedNode } from '../node/named-node.ts';
import { liftOwnCordon, withoutOwnCordon } from '../node/uncordon.ts';
import { releasedScaleDownHold, scaleDownHold } from '../node/scale-down-hold.ts';
import { NodeHold, onNode, refusedChange, type HoldDeps, type HoldKind } from '../node-hold/node-hold.ts';
import { planMaintenance, type MaintenancePlan } from './plan.ts';

const REFUSED = refusedChange('MaintenanceRefused', 'maintenance');
/** Phases that a timeout ends. */
const TIMED = new Set<string>(['Unknown', 'InPlaceUpdating', 'InPlaceUpdateSuccessful', 'InPlaceUpdateFailed']);

/** The Node is cordoned, if it is not, and emptied, never by force for the time's sake. */
const MAINTENANCE_HOLD: HoldKind = {
  purpose: 'maintenance',
  annotations: [SINCE, EMPTIED],
  begun: ['MaintenanceStarted', 'started the maintenance of a machine'],
  ended: ['MaintenanceEnded', 'ended the maintenance of a machine'],
  barrier: 'marked-cordon',
  forceRule: () => 'broken-node',
  waitsForOthers: `${REQUESTED} Waiting for another drain of the Node to end.`,
  scaleDownHold,
  ...onNode(MAINTENANCE, { Held: 'InMaintenance', Refused: 'UncordonFailed', Over: 'NotInMaintenance' }),
  refused(hold, err) {
    const why = REFUSED(hold, err);
    return why && `The API server refuses to uncordon Node ${nodeNameOf(hold.ctx.machine)}: ${why}`;
  },
};

/**
 * Takes machines into maintenance that are asked to be, by annotation on Machine or Node, and back; condition `Maintenance` of the Node tells
 * how far that is, and the Machine's conditions say the same. The plan says what follows when. Never ends the pass.
 */
export const maintenance = (deps: HoldDeps & Pick<Collaborators, 'machines'>): MachineStep => ({
  name: 'maintenance',

  async run(ctx) {
    const hold = new NodeHold(MAINTENANCE_HOLD, deps, ctx, namedNode(ctx, deps.machines));
    const plan = planOf(hold);
    if (plan !== 'empty') deps.drains.end(ctx, 'maintenance');
    await carryOut(hold, plan);
    return next;
  },
});

function planOf(
  { ctx: { machine, observed }, on }: NodeHold,
  shown = on && nodeConditionOf(on.node, MAINTENANCE)?.reason,
): MaintenancePlan {
  const { [EMPTIED]: emptied, [SINCE]: since } = observed.metadata.annotations ?? {};
  return planMaintenance({
    isRequested: isMaintenanceRequested(machine, on?.node),
    isRecorded: since !== undefined,
    emptied,
    nodeUID: on?.node.metadata.uid,
    shown,
    isCordoned: on?.node.spec?.unschedulable === true,
    isClockRestarted: !TIMED.has(phaseOf(machine)) || observed.status?.currentStatus?.lastUpdateTime === since,
  });
}

async function carryOut(hold: NodeHold, plan: MaintenancePlan): Promise<void> {
  const { machine } = hold.ctx;
  const now = toTimestamp(hold.deps.clock.now());
  switch (plan) {
    case 'leave-alone':
      return await showWrongValue(hold);
    case 'begin':
      return hold.begin(`${REQUESTED} ${howMaintenanceEnds(machine)}`);
    case 'empty':
      return await empty(hold);
    case 'keep':
      return await keep(hold);
    case 'withdraw':
      // From here on the Node is not taken for one that was emptied, should maintenance be asked for again.
      return hold.annotate({ [SINCE]: now, [EMPTIED]: GIVEN_BACK });
    case 'give-back':
      return await giveBack(hold);
    case 'restart-clock':
      // Whatever the machine did meanwhile, it has its whole timeout again from now on.
      restartClock(hold, now);
      return hold.annotate({ [SINCE]: now });
    case 'end':
      return hold.end('The machine is no longer in maintenance.');
  }
}

/** Until that is recorded it is done anew by each pass, and would wake the next one. */
function restartClock({ ctx: { machine, pass } }: NodeHold, now: string): void {
  const { currentStatus = {} } = machine.status;
  machine.status.currentStatus = { ...currentStatus, lastUpdateTime: now };
  pass.undoUnlessRecorded(() => void (machine.status.currentStatus = currentStatus));
}

async function empty(hold: NodeHold): Promise<void> {
  const { ctx, on, deps } = hold;
  if (on === undefined) return noteEmpty(hold, WITHOUT_NODE, 'There is no Node to drain');
  delete ctx.machine.metadata.annotations?.[EMPTIED];
  const hooks = hooksOf(ctx.machine, 'maintenance');
  if (hooks.length > 0) return await hold.awaitHooks(hooks);
  const state = await hold.empty();
  if (state?.kind === 'node-gone') deps.drains.end(ctx, 'maintenance');
  if (state?.kind === 'drained')
    noteEmpty(hold, on.node.metadata.uid, `Node ${nodeNameOf(ctx.machine)} is cordoned and drained`);
}

/** What is recorded here outlives the process: the drain may be forgotten. */
function noteEmpty(hold: NodeHold, what: string, text: string): void {
  const { machine, pass, log } = hold.ctx;
  hold.annotate({ [EMPTIED]: what });
  pass.event('InMaintenance', `${text}: the machine is in maintenance. ${howMaintenanceEnds(machine)}`, 'record');
  pass.afterWrite(() => {
    hold.deps.drains.end(hold.ctx, 'maintenance');
    log.info({}, 'machine entered maintenance');
  }, 'record');
}

async function keep(hold: NodeHold): Promise<void> {
  const { ctx, on } = hold;
  if (on === undefined) return;
  const isCordoned = on.node.spec?.unschedulable === true;
  const how = isCordoned ? 'is cordoned and drained' : 'was drained, but has been uncordoned since';
  // A cordon that somebody has lifted is theirs to set again.
  const correct = isCordoned ? undefined : (): Promise<void> => liftOwnCordon(ctx, on.nodes, on.node, () => false);
  await hold.keep(`Node ${on.node.metadata.name} ${how}. ${howMaintenanceEnds(ctx.machine)}`, correct);
}

async function giveBack(hold: NodeHold): Promise<void> {
  const { machine, pass } = hold.ctx;
  if (hold.deps.drains.isRunning(hold.ctx, 'maintenance')) return pass.alsoAfter(0, 'the drain to end');
  const isPreserved = (machine.status.currentStatus?.preserveExpiryTime ?? '') !== '';
  const release = (): Promise<boolean> =>
    hold.change((live) => {
      // Of an update in place that began meanwhile: it is lifted with its end.
      const cordon = isEmptyForUpdate(live) ? undefined : withoutOwnCordon(live);
      // Without record and cordon the Node may only not have been told that it is over, and a rollout keep the autoscaler away.
      const isOurs = hold.since !== undefined || cordon !== undefined;
      const scaleDown = isPreserved || !isOurs ? undefined : releasedScaleDownHold(live);
      if (scaleDown === undefined && cordon === undefined) return undefined;
      return { ...cordon, metadata: { annotations: { ...scaleDown, ...cordon?.metadata?.annotations } } };
    });
  const { refused, isSaid } = await hold.giveBack(release, ENDED);
  // The Node is as before, and only cannot be told so: else the maintenance would never end.
  if (refused === undefined && !isSaid) await carryOut(hold, planOf(hold, 'NotInMaintenance'));
}

/** A request that means nothing, on the Machine or else on its Node, is shown on the Node until it is corrected. */
async function showWrongValue(hold: NodeHold): Promise<void> {
  const { on, ctx } = hold;
  if (on === undefined) return;
  const ofNode = problemWith(MAINTENANCE_RULE, on.node, `Node ${on.node.metadata.name}`);
  const wrong = problemWith(MAINTENANCE_RULE, ctx.machine, 'the Machine') ?? ofNode;
  if (wrong !== undefined) await hold.say('InvalidValue', wrong);
  else if (nodeConditionOf(on.node, MAINTENANCE)?.reason === 'InvalidValue') await hold.say('Over', ENDED);
}
