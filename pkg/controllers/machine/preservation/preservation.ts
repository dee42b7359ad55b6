import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { LAST_APPLIED_NODE_PRESERVE_ANNOTATION, PRESERVE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { controllerOf } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, toTimestamp } from '../../../base/clock/clock.ts';
import { next } from '../../../work/reconcile/result.ts';
import { preserveTimeoutMsOf } from '../../machine-facts/settings.ts';
import { requestedPreservation } from '../../machine-facts/preserve-value.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { namedNode } from '../node/named-node.ts';
import { setCondition } from '../../machine-facts/node-condition.ts';
import { scaleDownHold } from '../node/scale-down-hold.ts';
import { NodeHold, refusedChange, type HoldDeps, type HoldKind } from '../node-hold/node-hold.ts';
import { markedFormerCordon, mayHaveFormerCordon } from './former-cordon.ts';
import {
  hasMarks,
  PRESERVATION_BARRIER,
  preservedCondition,
  releasedNode,
  showsDrained,
  showsPreserved,
  stoppedCondition,
  untainted,
} from './preserved-condition.ts';
import { planPreservation, type EndReason, type PreservationPlan } from './plan.ts';

type Preserve = Extract<PreservationPlan, { kind: 'preserve' }>;
type End = Extract<PreservationPlan, { kind: 'end' }>;

const END_TEXTS: Record<EndReason, string> = {
  expired: 'it expired',
  withdrawn: 'it is no longer requested',
  recovered: 'the machine recovered',
};

type Deps = HoldDeps & Pick<Collaborators, 'settings' | 'machines' | 'readMachine'>;
type Hold = NodeHold<Deps>;

/** The Node of a failed machine is tainted and emptied, by force after the drain timeout; that of any other works on. */
const PRESERVATION_HOLD: HoldKind<Deps> = {
  purpose: 'preservation',
  since: ({ ctx }) => ctx.machine.status.currentStatus?.lastUpdateTime,
  barrier: PRESERVATION_BARRIER,
  forceRule: () => 'usual',
  refused: refusedChange('NodeChangeRefused', 'its preservation'),
  // Once: anyone who takes the annotation away afterwards knows what he does.
  scaleDownHold: (node) => (showsPreserved(node) ? undefined : scaleDownHold(node)),
  async say({ ctx, deps, on }, stage) {
    const expiryMs = expiryMsOf(ctx);
    if (on === undefined || expiryMs === undefined) return;
    const isEmptied = phaseOf(ctx.machine) === 'Failed';
    const emptiness = stage === 'DrainFailed' ? 'not-drained' : isEmptied ? 'drained' : 'kept';
    const isAutomatic = requestedPreservation(ctx.machine, on.node) === 'auto-preserved';
    await setCondition(deps, ctx, on.nodes, on.node, preservedCondition(emptiness, isAutomatic, expiryMs));
  },
};

/**
 * Preserves machines that are asked to be, and ends that. The expiry time comes first and is recorded before the Node is touched;
 * it goes last, after the Node is as before: anyone who takes over in between goes on where it stands. Never ends the pass.
 *
 * | machine           | recorded       | Node                                                                                |
 * |-------------------|----------------|-------------------------------------------------------------------------------------|
 * | preserved         | expiry time    | autoscaler held off, condition `Preserved`                                          |
 * | preserved, Failed | the same       | the same, tainted and drained first; again when it recovers and fails a second time |
 * | not preserved     | no expiry time | neither                                                                             |
 *
 * The Node of one that is Running has no cordon of v0.62 of the original either.
 */
export const preservation = (deps: Deps): MachineStep => ({
  name: 'preservation',

  async run(ctx) {
    const { machine, observed } = ctx;
    // What the Node is told follows from a phase that was recorded: the write of this pass starts the next one.
    if (phaseOf(observed) !== phaseOf(machine)) return next;

    const node = namedNode(ctx, deps.machines);
    const hold = new NodeHold(PRESERVATION_HOLD, deps, ctx, node);
    const requested = requestedPreservation(machine, node);
    const isShown = hold.on !== undefined && hasMarks(hold.on.node);
    const nowMs = deps.clock.now();
    const plan = planPreservation({ requested, phase: phaseOf(machine), expiryMs: expiryMsOf(ctx), isShown, nowMs });
    if (plan.kind === 'preserve') await preserve(hold, plan);
    else deps.drains.end(ctx, 'preservation');
    if (plan.kind === 'end') await end(hold, plan);
    await takeOverCordon(hold);

    const isForgotten = plan.kind === 'end' && plan.forgetsRequest;
    if (!isForgotten && requested !== 'illegal' && typeof node === 'object') takeOver(ctx, node);
    return next;
  },
});

async function preserve(hold: Hold, plan: Preserve): Promise<void> {
  const { ctx, on, deps } = hold;
  const expiryMs = expiryMsOf(ctx);
  if (expiryMs === undefined) return begin(deps, ctx, plan);
  ctx.pass.alsoAfter(expiryMs - deps.clock.now(), 'the preservation to end');
  if (on === undefined) return;
  const phase = phaseOf(ctx.machine);
  if (phase === 'Failed' && !showsDrained(on.node)) {
    const state = await hold.empty();
    if (state?.kind === 'running' || state?.kind === 'failed') return;
    if (state?.kind === 'drained') await hold.say('Held', '');
  }
  deps.drains.end(ctx, 'preservation');
  const isTainted = phase === 'Running' && untainted(on.node) !== undefined;
  if (phase !== 'Failed') await hold.keep('', isTainted ? () => hold.change(untainted) : undefined);
}

function begin({ settings, clock }: Deps, { machine, pass, log }: MachineContext, { isAutomatic }: Preserve): void {
  const nowMs = clock.now();
  const expiry = toTimestamp(nowMs + preserveTimeoutMsOf(machine, settings));
  machine.status.currentStatus = {
    ...machine.status.currentStatus,
    preserveExpiryTime: expiry,
    ...restarted(machine, nowMs),
  };
  const who = isAutomatic ? 'its MachineSet preserves failed machines' : 'requested by annotation';
  pass.event('Preserved', `The machine is preserved until ${expiry}: ${who}.`);
  pass.afterWrite(() => log.info({ expiry }, 'preserved a machine'));
}

/** Of one that is Unknown the time says since when, with others of its zone: it is not preservation that made it so. */
function restarted(machine: MachineContext['machine'], nowMs: number): { readonly lastUpdateTime?: string } {
  return phaseOf(machine) === 'Unknown' ? {} : { lastUpdateTime: toTimestamp(nowMs) };
}

async function end(hold: Hold, plan: End): Promise<void> {
  const { ctx, deps, on } = hold;
  const { machine, pass, log } = ctx;
  const isPreserved = expiryMsOf(ctx) !== undefined;
  const isLeft = on !== undefined && hasMarks(on.node);
  // The cache may be older than the expiry time.
  if (!isPreserved && isLeft && (await isPreservedLive(hold))) return;
  let hadMarks: boolean | 'changed' | 'refused' = false;
  if (isPreserved || isLeft) hadMarks = await release(hold, plan);
  if (hadMarks === 'changed' || hadMarks === 'refused') return;

  const { annotations = {} } = machine.metadata;
  const isAsked = PRESERVE_ANNOTATION in annotations || LAST_APPLIED_NODE_PRESERVE_ANNOTATION in annotations;
  const forgets = plan.forgetsRequest && isAsked;
  if (forgets) {
    delete annotations[PRESERVE_ANNOTATION];
    delete annotations[LAST_APPLIED_NODE_PRESERVE_ANNOTATION];
    // As long as the request is there, the end of its time must be, or it would begin again.
    const { currentStatus } = machine.status;
    pass.undoUnlessRecorded(() => {
      if (currentStatus !== undefined) machine.status.currentStatus = currentStatus;
    });
  }
  const ends = isPreserved && !staysExpired(ctx, plan);
  if (ends) {
    const { preserveExpiryTime: _over, ...rest } = machine.status.currentStatus ?? {};
    machine.status.currentStatus = { ...rest, ...restarted(machine, deps.clock.now()) };
  }
  if (!(ends || hadMarks || (isPreserved && forgets))) return;
  const needs = forgets ? 'record' : 'status';
  pass.event('PreservationEnded', `The machine is no longer preserved: ${END_TEXTS[plan.why]}.`, needs);
  pass.afterWrite(() => log.info({ why: plan.why }, 'ended the preservation of a machine'), needs);
}

/**
 * A failed machine of a MachineSet keeps an expiry time that is past: it tells the set that this machine has had its time, and is
 * replaced. Without it a set that keeps failed machines would take it for one that has just failed, and keep it forever.
 */
function staysExpired({ machine }: MachineContext, { why }: End): boolean {
  return why === 'expired' && phaseOf(machine) === 'Failed' && controllerOf(machine)?.kind === 'MachineSet';
}

/** Whether the Machine itself has an expiry time, or is not this one any more. */
async function isPreservedLive({ ctx: { observed, signal }, deps }: Hold): Promise<boolean> {
  const live = await deps.readMachine(observed, signal);
  return live?.metadata.uid !== observed.metadata.uid || (live.status?.currentStatus?.preserveExpiryTime ?? '') !== '';
}

/**
 * Makes the Node as it was before. True when something had to go; `refused` when the API server does not allow it; `changed` when the Node
 * asks for something else by now than what was decided from: that is looked at first.
 */
async function release(hold: Hold, plan: End): Promise<boolean | 'changed' | 'refused'> {
  let released: boolean | 'changed' = false;
  const why = await hold.attempt(async () => {
    released = await takeMarks(hold, plan);
  });
  return why === undefined ? released : 'refused';
}

async function takeMarks(hold: Hold, { forgetsRequest }: End): Promise<boolean | 'changed'> {
  const { ctx, on, deps } = hold;
  if (on === undefined) return false;
  const condition = stoppedCondition(on.node);
  const said = condition !== undefined && (await setCondition(deps, ctx, on.nodes, on.node, condition));
  if (releasedNode(on.node, forgetsRequest) === undefined) return said;

  let isOther = false;
  const isChanged = await hold.change((live) => {
    isOther = requestOn(live) !== requestOn(on.node);
    return isOther ? undefined : releasedNode(live, forgetsRequest);
  });
  return isOther ? 'changed' : isChanged || said;
}

/** Of a machine that works only: as long as it is Failed the cordon does what our taint would. */
async function takeOverCordon(hold: Hold): Promise<void> {
  const { ctx, on } = hold;
  if (on === undefined || phaseOf(ctx.machine) !== 'Running' || !mayHaveFormerCordon(on.node)) return;
  await hold.attempt(async () => {
    if (await hold.change(markedFormerCordon))
      ctx.log.info({ node: on.node.metadata.name }, 'took over the cordon of a node that the original preserved');
  });
}

/**
 * The Node's word counts before the Machine's: it is noted on the Machine, and the Machine's own goes. When the Node's is taken
 * back, what was said on the Machine since counts again.
 */
function takeOver({ machine }: MachineContext, node: Node): void {
  const annotations = machine.metadata.annotations ?? {};
  const ofNode = requestOn(node) ?? '';
  const last = annotations[LAST_APPLIED_NODE_PRESERVE_ANNOTATION] ?? '';
  if (ofNode === '') {
    if (last !== '') delete annotations[LAST_APPLIED_NODE_PRESERVE_ANNOTATION];
    return;
  }
  delete annotations[PRESERVE_ANNOTATION];
  if (ofNode !== last) annotations[LAST_APPLIED_NODE_PRESERVE_ANNOTATION] = ofNode;
  machine.metadata.annotations = annotations;
}

function requestOn({ metadata }: Node): string | undefined {
  return metadata.annotations?.[PRESERVE_ANNOTATION];
}

function expiryMsOf({ machine }: MachineContext): number | undefined {
  return fromTimestamp(machine.status.currentStatus?.preserveExpiryTime);
}
