import { isDeepStrictEqual } from 'node:util';

import { nodeNameOf, vmClassNameOf } from '../../../apis/machine/v1alpha1/defaults.ts';
import {
  LAST_APPLIED_CAPACITY_ANNOTATION,
  NODE_SYNC_REFUSED_ANNOTATION,
} from '../../../apis/machine/v1alpha1/labels.ts';
import type { MachineClass } from '../../../apis/machine/v1alpha1/machine-class.ts';
import { isBeingDeleted } from '../../../apis/meta.ts';
import type { Node } from '../../../apis/wire.ts';
import { withDeadline } from '../../../base/clock/deadline.ts';
import { isDenial } from '../../../kube/client/errors.ts';
import { next, type StepResult } from '../../../work/reconcile/result.ts';
import type { Machine } from '../../../apis/machine/v1alpha1/machine.ts';
import type { NodeAccess } from '../../machine-facts/node-access.ts';
import { belongsTo } from '../../machine-facts/node-owner.ts';
import { joinsRollout } from '../../replicas/rollout-hold.ts';
import {
  ALL_CHANGES,
  describeRefusals,
  isFirstFailure,
  isWorthReporting,
  reasonFor,
  type NodeRefusal,
} from '../../machine-facts/node-refusal.ts';
import type { MachineContext, MachineStep } from '../context.ts';
import type { Collaborators } from '../collaborators.ts';
import { judgeLabels } from './allowed-labels.ts';
import { capacityChange, type CapacityChange } from './node-capacity.ts';
import { applyInParts } from './node-parts.ts';
import { scaleDownHold } from './scale-down-hold.ts';
import { nodeChange, OWN_ENTRIES, templateEntries, type NodeChange } from './node-template.ts';

/** Pause before what was refused is tried again: after the first time, doubled with each further one up to the longest. */
const FIRST_RETRY_MS = 10_000;
const LONGEST_RETRY_MS = 600_000;

/** Longest that the write of the Machine waits: a webhook may take half a minute. */
const PATIENCE_MS = 1_000;

const CAPACITY = 'virtual capacity';

type Deps = Pick<
  Collaborators,
  | 'clock'
  | 'machines'
  | 'classes'
  | 'labelPolicies'
  | 'reportedOnce'
  | 'lostNodes'
  | 'owners'
  | 'holdsScaleDownDuringRollout'
>;

interface RefusedNodeSync {
  /** Of what was asked for, and of which Node. */
  readonly requested: string;
  readonly refusals: readonly NodeRefusal[];
  readonly failures: number;
  /** When it is tried again, monotonic. */
  readonly retryAtMs: number;
}

/** With the Nodes of which something was refused, by the UID of their Machine. */
type Own = Deps & { readonly refused: Map<string, RefusedNodeSync> };

/**
 * Makes the Node show whose it is, obey the machine's template, and have its class's virtual capacity: one patch of the Node and
 * one of its status, and only when something is missing. A Node that is being deleted, or is another machine's, is left alone.
 * The write of the Machine does not depend on it, and waits a second at most. What the API server refuses is told on the Machine, the
 * rest is applied all the same.
 */
export const nodeSync = (collaborators: Deps): MachineStep => {
  const deps: Own = { ...collaborators, refused: new Map() };
  return { name: 'node-sync', run: (ctx) => reconcile(deps, ctx), forget: (uid) => void deps.refused.delete(uid) };
};

/** A Node that is brought in step with its Machine, without what was refused and is not due yet. */
interface Syncing {
  readonly deps: Own;
  readonly ctx: MachineContext;
  readonly nodes: NodeAccess;
  readonly node: Node;
  readonly without: ReadonlySet<string>;
}

async function reconcile(deps: Own, ctx: MachineContext): Promise<StepResult> {
  const { machine, nodes, pass, signal } = ctx;
  const node = nodes?.get(nodeNameOf(machine));
  if (nodes === undefined || node === undefined || isBeingDeleted(node) || isForeign(deps, ctx, node)) return next;

  const known = knownOf(deps, ctx, node);
  if (known === undefined) deps.refused.delete(machine.metadata.uid);
  const leftMs = known === undefined ? 0 : Math.max(0, known.retryAtMs - deps.clock.monotonicMs());
  const without = new Set(leftMs > 0 ? known?.refusals.map(({ what }) => what) : []);
  const capacity = without.has(CAPACITY) ? undefined : capacityChange(classOf(deps, ctx), node);
  const syncing: Syncing = { deps, ctx, nodes, node, without };
  const change = changeOf(syncing, capacity);
  const isWhole = change === undefined && capacity === undefined && leftMs === 0;
  const forbidden = judgeLabels(machine, node, deps.labelPolicies.list()).refusals;
  report(deps, ctx, isWhole, [...(known?.refusals ?? []), ...forbidden]);
  if (leftMs > 0) pass.alsoAfter(leftMs, 'the API server to accept the refused changes of the Node');
  if ((change !== undefined || capacity !== undefined) && !without.has(ALL_CHANGES)) {
    const synced = sync(syncing);
    // What it ends with is looked at when the Machine was written.
    await withDeadline(deps.clock, PATIENCE_MS, 'node sync', () => synced, signal).catch(() => undefined);
    pass.afterwards(() => synced);
  }
  return next;
}

/** What was refused for this Node, while the same is asked for. */
function knownOf(deps: Own, ctx: MachineContext, node: Node): RefusedNodeSync | undefined {
  const known = deps.refused.get(ctx.machine.metadata.uid);
  return known?.requested === askedOf(deps, ctx, node) ? known : undefined;
}

function askedOf(deps: Own, ctx: MachineContext, node: Node): string {
  const { metadata, spec } = ctx.machine.spec.nodeTemplate ?? {};
  const { virtualCapacity } = classOf(deps, ctx)?.nodeTemplate ?? {};
  return JSON.stringify([node.metadata.uid, metadata, spec?.taints, virtualCapacity]);
}

/** Tells on the Machine what is refused; `isWhole`: all else that is asked for is there. */
function report(deps: Own, { machine, pass }: MachineContext, isWhole: boolean, refusals: NodeRefusal[]): void {
  const { [NODE_SYNC_REFUSED_ANNOTATION]: told, ...others } = machine.metadata.annotations ?? {};
  if (isWhole) deps.refused.delete(machine.metadata.uid);
  if (isWhole && refusals.length === 0 && told !== undefined) machine.metadata.annotations = others;
  if (refusals.length === 0) return;
  const text = describeRefusals(refusals);
  if (told === text) return;
  machine.metadata.annotations = { ...others, [NODE_SYNC_REFUSED_ANNOTATION]: text };
  pass.event('NodeSyncRefused', `Changes of the Node are refused: ${text}`);
}

async function sync(syncing: Syncing): Promise<void> {
  const { deps, ctx, node, without } = syncing;
  const { machine, pass, log } = ctx;
  const { uid } = machine.metadata;
  const known = knownOf(deps, ctx, node);
  const isRetry = without.size === 0;
  const refusals: NodeRefusal[] = isRetry ? [] : [...(known?.refusals ?? [])];
  refusals.push(...(await syncCapacity(syncing)));
  const capacity = refusals.some(({ what }) => what === CAPACITY)
    ? undefined
    : capacityChange(classOf(deps, ctx), node);
  refusals.push(...(await syncTemplate(syncing, capacity)));
  if (refusals.length === 0) {
    deps.refused.delete(uid);
    return;
  }
  const isNews = known === undefined || !isDeepStrictEqual(known.refusals, refusals);
  if (!isNews && !isRetry) return;
  const failures = isRetry ? (known?.failures ?? 0) + 1 : (known?.failures ?? 1);
  const waitMs = Math.min(FIRST_RETRY_MS * 2 ** (failures - 1), LONGEST_RETRY_MS);
  const retryAtMs = deps.clock.monotonicMs() + waitMs;
  deps.refused.set(uid, { requested: askedOf(deps, ctx, node), refusals, failures, retryAtMs });
  if (isNews)
    log.warn({ node: node.metadata.name, refused: describeRefusals(refusals) }, 'API server refused changes of a node');
  // Another pass tells of it.
  pass.alsoAfter(isNews ? 0 : waitMs, 'the API server to accept the refused changes of the Node');
}

async function syncCapacity({ deps, ctx, nodes, node, without }: Syncing): Promise<NodeRefusal[]> {
  const capacity = without.has(CAPACITY) ? undefined : capacityChange(classOf(deps, ctx), node)?.capacity;
  if (capacity === undefined) return [];
  try {
    await nodes.patchStatus(node, { capacity }, ctx.signal);
    return [];
  } catch (err) {
    if (!isWorthReporting(err)) throw err;
    return [{ what: CAPACITY, why: reasonFor(err, node.metadata.name) }];
  }
}

/** At once if the API server takes it, in parts otherwise. */
async function syncTemplate(syncing: Syncing, capacity: CapacityChange | undefined): Promise<readonly NodeRefusal[]> {
  const { deps, ctx, node, without } = syncing;
  const { machine, log } = ctx;
  const { name } = node.metadata;
  const change = changeOf(syncing, capacity);
  if (change === undefined) return [];
  try {
    await apply(syncing, capacity, change.taints === undefined);
    log.info({ node: name }, 'applied the node template');
    return [];
  } catch (err) {
    if (!isWorthReporting(err)) throw err;
    if (isFirstFailure(err, deps.reportedOnce, machine.metadata.uid, 'node sync failed')) throw err;
    // A webhook that does not work would make us wait for each part.
    if (!isDenial(err)) return [{ what: ALL_CHANGES, why: reasonFor(err, name) }];
    const [marks, entries] = [OWN_ENTRIES, templateEntries(allowedOf(deps, ctx, node))].map((some) =>
      some.filter((one) => !without.has(one)),
    );
    return await applyInParts(marks ?? [], entries ?? [], name, (part) =>
      apply({ ...syncing, without: part }, capacity, false),
    );
  }
}

function classOf({ classes }: Own, { machine }: MachineContext): MachineClass | undefined {
  return classes.get(`${machine.metadata.namespace ?? ''}/${vmClassNameOf(machine)}`);
}

/** The machine as if its template asked for nothing that is not allowed. */
function allowedOf({ labelPolicies }: Own, { machine }: MachineContext, node: Node): Machine {
  const policies = labelPolicies.list();
  const { nodeTemplate } = machine.spec;
  if (policies.length === 0 || nodeTemplate?.metadata === undefined) return machine;
  const metadata = { ...nodeTemplate.metadata, labels: judgeLabels(machine, node, policies).labels };
  return { ...machine, spec: { ...machine.spec, nodeTemplate: { ...nodeTemplate, metadata } } };
}

/** What the Node itself lacks, the record of its virtual capacity included. */
function changeOf(syncing: Syncing, capacity: CapacityChange | undefined): NodeChange | undefined {
  const { deps, ctx, node, without } = syncing;
  const change = nodeChange(allowedOf(deps, ctx, node), node, without);
  const more = {
    ...(capacity?.record !== undefined && { [LAST_APPLIED_CAPACITY_ANNOTATION]: capacity.record }),
    // With the very first marks of a Node; a refusal of it must not keep the others from being tried in parts.
    ...(without.size === 0 && change?.metadata.finalizers !== undefined && holdOfRollout(deps, ctx, node)),
  };
  if (Object.keys(more).length === 0) return change;
  const annotations = { ...(change?.metadata['annotations'] as object | undefined), ...more };
  return { taints: change?.taints, metadata: { ...change?.metadata, annotations } };
}

function holdOfRollout(deps: Own, { machine }: MachineContext, node: Node): Record<string, string> | undefined {
  return deps.holdsScaleDownDuringRollout && joinsRollout(machine, deps) ? scaleDownHold(node) : undefined;
}

/**
 * One patch of the Node. Taints are one list without merge key: a taint that somebody adds at the same moment must not be lost, so
 * that the Node is read live, unless it is known that no taint changes.
 */
async function apply(syncing: Syncing, capacity: CapacityChange | undefined, trustsCache: boolean): Promise<void> {
  const { deps, ctx, nodes, node: cached } = syncing;
  const { signal } = ctx;
  const live = trustsCache ? cached : await nodes.read(cached.metadata.name, signal);
  if (live === undefined || live.metadata.uid !== cached.metadata.uid || isBeingDeleted(live)) return;
  const change = changeOf({ ...syncing, node: live }, capacity);
  if (change === undefined) return;
  const { metadata, taints } = change;
  // Before it is written: its deletion may be told before the answer comes.
  if (metadata['finalizers'] !== undefined) deps.lostNodes.protect(ctx.machine, live);
  const { resourceVersion } = live.metadata;
  const body = taints === undefined ? { metadata } : { metadata: { ...metadata, resourceVersion }, spec: { taints } };
  await nodes.patch(live, body, signal);
}

/** Two Machines that claim one Node would undo each other's labels forever. */
function isForeign({ machines }: Own, { machine, log }: MachineContext, node: Node): boolean {
  if (belongsTo(node, machine, machines)) return false;
  log.debug({ node: node.metadata.name }, 'ignored a node of another machine');
  return true;
}
