import { at, isMembers, type Members } from '../json.ts';
import { AGE, ageOf, type Column, NAME } from './column.ts';

const NONE = '<none>';
const WIDE = { priority: 1 } as const;

const text = (name: string, cell: Column['cell'], more: Partial<Column> = {}): Column => ({
  name,
  type: 'string',
  ...more,
  cell,
});
const textAt = (name: string, path: readonly string[], more: Partial<Column> = {}): Column =>
  text(name, (object) => shown(at(object, path)), more);
const count = (name: string, cell: Column['cell']): Column => ({ name, type: 'integer', cell });

/** The columns of kinds that are built in, by plural. Source: `printers/internalversion` of Kubernetes. */
export function builtInColumns(plural: string): readonly Column[] {
  const columns = COLUMNS[plural];
  if (columns === undefined) throw new Error(`${plural} have no columns`);
  return columns;
}

const COLUMNS: Readonly<Record<string, readonly Column[]>> = {
  namespaces: [NAME, textAt('Status', ['status', 'phase']), AGE],
  nodes: [
    NAME,
    text('Status', nodeStatus),
    text('Roles', nodeRoles),
    AGE,
    textAt('Version', ['status', 'nodeInfo', 'kubeletVersion']),
    text('Internal-IP', (node) => nodeAddress(node, 'InternalIP'), WIDE),
    text('External-IP', (node) => nodeAddress(node, 'ExternalIP'), WIDE),
    text('OS-Image', (node) => nodeInfo(node, 'osImage'), WIDE),
    text('Kernel-Version', (node) => nodeInfo(node, 'kernelVersion'), WIDE),
    text('Container-Runtime', (node) => nodeInfo(node, 'containerRuntimeVersion'), WIDE),
  ],
  pods: [
    NAME,
    text('Ready', podReady),
    text('Status', podStatus),
    text('Restarts', () => '0'),
    AGE,
    text('IP', (pod) => orNone(at(pod, ['status', 'podIP'])), WIDE),
    text('Node', (pod) => orNone(at(pod, ['spec', 'nodeName'])), WIDE),
    text('Nominated Node', () => NONE, WIDE),
    text('Readiness Gates', () => NONE, WIDE),
  ],
  secrets: [NAME, textAt('Type', ['type']), text('Data', sizeOf), AGE],
  configmaps: [NAME, text('Data', sizeOf), AGE],
  events: [
    text('Last Seen', (event, nowMs) => ageOf(event, ['lastTimestamp'], nowMs)),
    textAt('Type', ['type']),
    textAt('Reason', ['reason']),
    text('Object', objectOfEvent),
    textAt('Subobject', ['involvedObject', 'fieldPath'], WIDE),
    text('Source', sourceOfEvent, WIDE),
    textAt('Message', ['message']),
    text('First Seen', (event, nowMs) => ageOf(event, ['firstTimestamp'], nowMs), WIDE),
    text('Count', (event) => at(event, ['count']) ?? 0, WIDE),
    { ...NAME, ...WIDE },
  ],
  leases: [NAME, textAt('Holder', ['spec', 'holderIdentity']), AGE],
  persistentvolumes: [NAME, textAt('Status', ['status', 'phase']), AGE],
  persistentvolumeclaims: [NAME, textAt('Status', ['status', 'phase']), textAt('Volume', ['spec', 'volumeName']), AGE],
  volumeattachments: [
    { ...NAME },
    textAt('Attacher', ['spec', 'attacher'], { format: 'name' }),
    textAt('PV', ['spec', 'source', 'persistentVolumeName']),
    textAt('Node', ['spec', 'nodeName']),
    { name: 'Attached', type: 'boolean', cell: (object) => at(object, ['status', 'attached']) ?? false },
    AGE,
  ],
  poddisruptionbudgets: [
    NAME,
    text('Min Available', (budget) => shown(at(budget, ['spec', 'minAvailable'])) || 'N/A'),
    text('Max Unavailable', (budget) => shown(at(budget, ['spec', 'maxUnavailable'])) || 'N/A'),
    count('Allowed Disruptions', (budget) => at(budget, ['status', 'disruptionsAllowed']) ?? 0),
    AGE,
  ],
};

function shown(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

function membersAt(object: Members, path: readonly string[]): readonly Members[] {
  const value = at(object, path);
  return Array.isArray(value) ? value.filter(isMembers) : [];
}

function orNone(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : NONE;
}

function nodeStatus(node: Members): string {
  const ready = membersAt(node, ['status', 'conditions']).find(({ type }) => type === 'Ready');
  const status = ready === undefined ? 'Unknown' : ready['status'] === 'True' ? 'Ready' : 'NotReady';
  return at(node, ['spec', 'unschedulable']) === true ? `${status},SchedulingDisabled` : status;
}

const ROLE = 'node-role.kubernetes.io/';

function nodeRoles(node: Members): string {
  const labels = Object.keys((at(node, ['metadata', 'labels']) as Members | undefined) ?? {});
  const roles = labels.flatMap((label) => (label.startsWith(ROLE) ? [label.slice(ROLE.length)] : []));
  return orNone(roles.toSorted().join(','));
}

function nodeAddress(node: Members, type: string): string {
  return orNone(membersAt(node, ['status', 'addresses']).find((address) => address['type'] === type)?.['address']);
}

function nodeInfo(node: Members, name: string): string {
  const value = at(node, ['status', 'nodeInfo', name]);
  return typeof value === 'string' && value !== '' ? value : '<unknown>';
}

function podReady(pod: Members): string {
  const ready = membersAt(pod, ['status', 'containerStatuses']).filter(({ ready: is }) => is === true);
  return `${ready.length}/${membersAt(pod, ['spec', 'containers']).length}`;
}

function podStatus(pod: Members): string {
  if (at(pod, ['metadata', 'deletionTimestamp']) !== undefined) return 'Terminating';
  return shown(at(pod, ['status', 'reason'])) || shown(at(pod, ['status', 'phase']));
}

function sizeOf(object: Members): number {
  return Object.keys((object['data'] as Members | undefined) ?? {}).length;
}

function objectOfEvent(event: Members): string {
  const { kind = '', name = '' } = (event['involvedObject'] ?? {}) as { kind?: string; name?: string };
  return kind === '' ? name : `${kind.toLowerCase()}/${name}`;
}

function sourceOfEvent(event: Members): string {
  const { component = '', host = '' } = (event['source'] ?? {}) as { component?: string; host?: string };
  return [component, host].filter((part) => part !== '').join(', ');
}
