import { phaseOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import { LAST_APPLIED_NODE_PRESERVE_ANNOTATION, PRESERVE_ANNOTATION } from '../../../apis/machine/v1alpha1/labels.ts';
import { controllerOf } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { fromTimestamp, toTimestamp } from '../../../clock/clock.ts';
import { next } from '../../../reconcile/result.ts';
import type { NodeAccess } from '../../machines/node-access.ts';
import { preserveTimeoutMsOf } from '../../machines/settings.ts';
import { requestedPreservation } from '../../machines/preserve-value.ts';
import type { Collaborators } from '../collaborators.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import { namedNode, type NamedNode } from '../node/named-node.ts';
import { setCondition } from '../../machines/node-condition.ts';
import { scaleDownHold } from '../node/scale-down-hold.ts';
import {
  PRESERVATION_BARRIER,
  type Emptiness,
  preservedCondition,
  releasedAnnotations,
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

type Deps = Pick<Collaborators, 'drains' | 'clock' | 'settings' | 'machines'>;

/**
 * Preserves machines that are asked to be, and ends that. The expiry time comes first and is recorded before the Node is touched;
 * it goes last, after the Node is as before: anyone who takes over in between goes on where it stands. Never ends the pass.
 *
 * | machine           | recorded       | Node                                                                                |
 * |-------------------|----------------|-------------------------------------------------------------------------------------|
 * | preserved         | expiry time    | autoscaler held off, condition `Preserved`                                          |
 * | preserved, Failed | the same       | the same, tainted and drained first; again when it recovers and fails a second time |
 * | not preserved     | no expiry time | neither                                                                             |
 */
export const preservation = (deps: Deps): MachineStep => ({
  name: 'preservation',

  async run(ctx) {
    const { machine, observed } = ctx;
    // What the Node is told follows from a phase that was recorded: the write of this pass starts the next one.
    if (phaseOf(observed) !== phaseOf(machine)) return next;

    const node = namedNode(ctx, deps.machines);
    const requested = requestedPreservation(machine, node);
    const facts = { requested, phase: phaseOf(machine), expiryMs: expiryMsOf(ctx), nowMs: deps.clock.now() };
    const plan = planPreservation(facts);
    if (plan.kind === 'preserve') await preserve(deps, ctx, node, plan);
    else deps.drains.end(ctx, 'preservation');
    if (plan.kind === 'end') await end(deps, ctx, node, plan);

    const isForgotten = plan.kind === 'end' && plan.forgetsRequest;
    if (!isForgotten && requested !== 'illegal' && typeof node === 'object') takeOver(ctx, node);
    return next;
  },
});

async function preserve(deps: Deps, ctx: MachineContext, node: NamedNode, plan: Preserve): Promise<void> {
  const { nodes, pass } = ctx;
  const expiryMs = expiryMsOf(ctx);
  if (expiryMs === undefined) {
    begin(deps, ctx, plan);
    return;
  }
  pass.alsoAfter(expiryMs - deps.clock.now(), 'the preservation to end');
  if (nodes === undefined || typeof node !== 'object') return;
  const report = (emptiness: Emptiness): Promise<boolean> =>
    setCondition(deps, ctx, nodes, node, preservedCondition(emptiness, plan.isAutomatic, expiryMs));
  if (phaseOf(ctx.machine) === 'Failed') await empty(deps, ctx, { nodes, node, report });
  else await keep(deps, ctx, { nodes, node, report });
}

/** The Node of a preserved machine, and what puts condition `Preserved` on it. */
interface PreservedNode {
  readonly nodes: NodeAccess;
  readonly node: Node;
  readonly report: (emptiness: Emptiness) => Promise<boolean>;
}

function begin({ settings, clock }: Deps, { machine, pass, log }: MachineContext, { isAutomatic }: Preserve): void {
  const nowMs = clock.now();
  const expiry = toTimestamp(nowMs + preserveTimeoutMsOf(machine, settings));
  machine.status.currentStatus = {
    ...machine.status.currentStatus,
    preserveExpiryTime: expiry,
    lastUpdateTime: toTimestamp(nowMs),
  };
  const who = isAutomatic ? 'its MachineSet preserves failed machines' : 'requested by annotation';
  pass.event('Preserved', `The machine is preserved until ${expiry}: ${who}.`);
  pass.afterWrite(() => log.info({ expiry }, 'preserved a machine'));
}

/** The Node of a machine that has not failed goes on working. */
async function keep(deps: Deps, ctx: MachineContext, { nodes, node, report }: PreservedNode): Promise<void> {
  deps.drains.end(ctx, 'preservation');
  await holdOffAutoscaler(ctx, nodes, node);
  if (phaseOf(ctx.machine) === 'Running') await untaint(ctx, nodes, node);
  await report('kept');
}

/** The Node of a failed machine is emptied, once, and left for people to look at. */
async function empty(deps: Deps, ctx: MachineContext, { nodes, node, report }: PreservedNode): Promise<void> {
  const { machine, pass } = ctx;
  if (showsDrained(node)) {
    deps.drains.end(ctx, 'preservation');
    return;
  }
  await holdOffAutoscaler(ctx, nodes, node);
  const startMs = fromTimestamp(machine.status.currentStatus?.lastUpdateTime) ?? deps.clock.now();
  const barrier = PRESERVATION_BARRIER;
  const what = { purpose: 'preservation', nodes, node, barrier, startMs, forceRule: 'usual' } as const;
  const drain = await deps.drains.advanceKept(ctx, what);
  if (drain.kind === 'running') return;
  if (drain.kind === 'failed') {
    await report('not-drained');
    if (drain.isNews) pass.event('DrainFailed', drain.text);
    return;
  }
  if (drain.kind === 'drained') await report('drained');
  deps.drains.end(ctx, 'preservation');
}

/** Once: anyone who takes the annotation away afterwards knows what he does. */
async function holdOffAutoscaler({ signal }: MachineContext, nodes: NodeAccess, node: Node): Promise<void> {
  const annotations = showsPreserved(node) ? undefined : scaleDownHold(node);
  if (annotations !== undefined) await nodes.patch(node, { metadata: { annotations } }, signal);
}

async function end(deps: Deps, ctx: MachineContext, node: NamedNode, plan: End): Promise<void> {
  const { machine, nodes, pass, log } = ctx;
  const isPreserved = expiryMsOf(ctx) !== undefined;
  const hadMarks =
    isPreserved && nodes !== undefined && typeof node === 'object' && (await release(deps, ctx, nodes, node, plan));
  if (hadMarks === 'changed') return;

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
    machine.status.currentStatus = { ...rest, lastUpdateTime: toTimestamp(deps.clock.now()) };
  }
  if (!isPreserved || !(ends || hadMarks || forgets)) return;
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

/**
 * Makes the Node as it was before. True when something had to go; `changed` when the Node asks for something else by now than
 * what was decided from: that is looked at first.
 */
async function release(
  deps: Deps,
  ctx: MachineContext,
  nodes: NodeAccess,
  cached: Node,
  { forgetsRequest }: End,
): Promise<boolean | 'changed'> {
  const { signal } = ctx;
  const condition = stoppedCondition(cached);
  const said = condition === undefined ? false : await setCondition(deps, ctx, nodes, cached, condition);
  const hasMarks = releasedAnnotations(cached, forgetsRequest) !== undefined || untainted(cached) !== undefined;
  if (!hasMarks) return said;

  const live = await nodes.read(cached.metadata.name, signal);
  if (live === undefined || live.metadata.uid !== cached.metadata.uid) return said;
  if (requestOn(live) !== requestOn(cached)) return 'changed';
  const annotations = releasedAnnotations(live, forgetsRequest);
  const taints = untainted(live);
  const { resourceVersion } = live.metadata;
  const metadata = { resourceVersion, ...(annotations !== undefined && { annotations }) };
  if (annotations === undefined && taints === undefined) return said;
  await nodes.patch(live, taints === undefined ? { metadata } : { metadata, spec: { taints } }, signal);
  return true;
}

async function untaint({ signal }: MachineContext, nodes: NodeAccess, cached: Node): Promise<void> {
  if (untainted(cached) === undefined) return;
  const live = await nodes.read(cached.metadata.name, signal);
  if (live === undefined || live.metadata.uid !== cached.metadata.uid) return;
  const taints = untainted(live);
  const { resourceVersion } = live.metadata;
  if (taints !== undefined) await nodes.patch(live, { metadata: { resourceVersion }, spec: { taints } }, signal);
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
