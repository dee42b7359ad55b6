import { MAINTENANCE } from './maintenance.ts';
import type { NodeCondition, Node } from '../../apis/wire.ts';
import { CRITICAL_COMPONENTS_TAINT } from '../../apis/machine/v1alpha1/labels.ts';

/** Whose reason counts as well as its status. */
const IN_PLACE_UPDATE = 'InPlaceUpdate';
/** Tells by its message whether the Node was drained. */
const PRESERVED = 'Preserved';

/**
 * Whether the conditions say something new: a type appeared or vanished, or a status (of `InPlaceUpdate` also the reason, of
 * `Preserved` the message, of `Maintenance` both) differs. Heartbeats, messages and other reasons do not count, or every Node would cost a write every few minutes.
 */
export function conditionsChanged(before: readonly NodeCondition[], after: readonly NodeCondition[]): boolean {
  if (before.length !== after.length) return true;
  const known = new Map(before.map((condition) => [condition.type, condition]));
  return after.some((condition) => {
    const old = known.get(condition.type);
    if (old === undefined || old.status !== condition.status) return true;
    if (condition.type === PRESERVED) return old.message !== condition.message;
    if (condition.type === MAINTENANCE) return old.reason !== condition.reason || old.message !== condition.message;
    return condition.type === IN_PLACE_UPDATE && old.reason !== condition.reason;
  });
}

/**
 * The conditions because of which a Node is not healthy: `Ready` unless True, and those of `watched` unless False. A
 * condition that the Node does not report is fine.
 */
export function badConditions(conditions: readonly NodeCondition[], watched: readonly string[]): NodeCondition[] {
  return conditions.filter(({ type, status }) =>
    type === 'Ready' ? status !== 'True' : watched.includes(type) && status !== 'False',
  );
}

/** Whether the Node works: it reports conditions at all, and none of them is bad. */
export function isHealthy(conditions: readonly NodeCondition[], watched: readonly string[]): boolean {
  return conditions.length > 0 && badConditions(conditions, watched).length === 0;
}

/** Whether a condition is one because of which a Node cannot end its pods by itself. */
export function isBreaking({ type, status }: Pick<NodeCondition, 'type' | 'status'>): boolean {
  return (type === 'Ready' && status !== 'True') || (type === 'ReadonlyFilesystem' && status !== 'False');
}

export function isReady({ status }: Pick<Node, 'status'>): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
}

/** The text of the time since when its Ready is as it is. */
export function readySince({ status }: Pick<Node, 'status'>): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime;
}

/** Keep pods off a Node until its critical components run, or its cloud controller manager has initialized it. */
export const SETUP_TAINTS: readonly string[] = [
  CRITICAL_COMPONENTS_TAINT,
  'node.cloudprovider.kubernetes.io/uninitialized',
];

/** Whether pods are kept off the Node because it is not set up yet; a machine joins only without these taints. */
export function isBeingSetUp(node: Node): boolean {
  return setupTaintsOf(node).length > 0;
}

/** Keys of the taints because of which a Node is not set up yet. */
export function setupTaintsOf({ spec }: Node): readonly string[] {
  const taints = spec?.taints ?? [];
  return taints
    .filter(({ key, effect }) => SETUP_TAINTS.includes(key) && effect === 'NoSchedule')
    .map(({ key }) => key);
}

/** Conditions for people: `Ready is Unknown (NodeStatusUnknown: the kubelet has been silent since 2026-01-01T00:00:00Z), DiskPressure is True`. */
export function describeConditions(conditions: readonly NodeCondition[]): string {
  return conditions.map(describeCondition).join(', ');
}

function describeCondition(condition: NodeCondition): string {
  const { type, status, reason } = condition;
  return reason === undefined ? `${type} is ${status}` : `${type} is ${status} (${reason}${silenceOf(condition)})`;
}

/** What the node lifecycle controller sets when a kubelet stops posting its status; it leaves the time of the last one. */
const SILENT = 'NodeStatusUnknown';

function silenceOf({ type, reason, lastHeartbeatTime: last }: NodeCondition): string {
  const isSilent = type === 'Ready' && reason === SILENT && typeof last === 'string';
  return isSilent ? `: the kubelet has been silent since ${last}` : '';
}
